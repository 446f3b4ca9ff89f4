"""Publishing packages, and collecting packages built on other machines."""
