"""The matrix as text, as a page and as a picture."""
