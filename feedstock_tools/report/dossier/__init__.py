"""The dossier: the evidence for reviewers of built packages."""
