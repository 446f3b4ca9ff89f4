"""The files of CI services, rendered from the templates of a release."""
