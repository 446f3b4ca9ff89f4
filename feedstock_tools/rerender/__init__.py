"""Recipe, pinning, migrations and conda-forge.yml to `.ci_support` files, as conda-smithy writes them."""
