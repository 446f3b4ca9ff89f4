"""Running an agenda: the scheduler, one row, retries and logs."""
