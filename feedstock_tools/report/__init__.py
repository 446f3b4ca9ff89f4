"""What people look at: tables, Markdown, pictures and pages."""
