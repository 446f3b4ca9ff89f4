"""What diff, lint, review and rehearse find in real feedstocks, and what they cost."""
