"""What a feedstock would build: configurations, outputs and their identities, needs and order."""
