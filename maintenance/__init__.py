"""Programs for those who look after feedstock-tools; CONTRIBUTING.md says when to run which."""
