"""What a recipe says in each of its settings."""
