"""Testing built packages again: their own tests and benchmarks in fresh environments, recorded and compared."""
