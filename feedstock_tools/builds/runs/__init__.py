"""An agenda carried out: the scheduler, one row, retries and logs."""
