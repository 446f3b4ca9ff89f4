"""A workspace of feedstocks: an index of what each makes and uses, and what a change of the pinning does to them."""
