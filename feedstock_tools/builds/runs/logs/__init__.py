"""What the programs of a run print: log files, secrets left out, and what an observer sees of it."""
