"""Other machines: bundles and orders go out, packages come back; Dask carries them over TLS."""
