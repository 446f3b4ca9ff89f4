"""Whether configurations make sense before anything is built."""
