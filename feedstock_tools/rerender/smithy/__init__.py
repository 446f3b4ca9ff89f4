"""The CI files of a feedstock, as conda-smithy writes them."""
