"""How the pages look: photographs at every width and in both colour schemes, and what axe finds."""
