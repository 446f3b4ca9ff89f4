"""A generator of hostile templates, YAML, archives, repodata and ledgers, and the readers that must withstand them."""
