"""Publishing packages, and collecting those that other machines built."""
