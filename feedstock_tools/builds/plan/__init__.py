"""The plan of a feedstock: configurations, outputs and their identities, needs and order."""
