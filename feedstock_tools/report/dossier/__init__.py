"""The dossier: what reviewers of built packages ask for."""
