"""What checks find, as text, Markdown, JSON and annotations."""
