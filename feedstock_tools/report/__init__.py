"""Output for people: tables, Markdown, pictures and pages."""
