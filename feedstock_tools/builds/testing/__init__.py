"""Testing built packages again: their own tests and benchmarks in fresh environments, recorded and compared.

`running` has what one package asks for, by its metadata, and runs it; `tests` chooses packages and channels, sets the
limits, and records; `verifying` builds rows a second time.
"""
