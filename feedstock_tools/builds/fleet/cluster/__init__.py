"""Jobs of a cluster as hosts: dask-jobqueue submits and ends them, in the process of the scheduler."""
