"""Messages between the machines of a fleet: plain values over Dask's TLS connections."""
