"""The outputs of a configuration, as each recipe format names them."""
