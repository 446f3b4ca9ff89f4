"""How long a matrix takes on hosts that nobody rents yet, and what they cost."""
