"""A generator of hostile templates, YAML, archives, repodata, ledgers and messages, and the readers that must hold."""
