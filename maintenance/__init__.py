"""Programs for the maintainers of feedstock-tools; CONTRIBUTING.md explains when to run which."""
