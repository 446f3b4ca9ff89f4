"""What goes to a host: bundles of files, and orders."""
