"""Building configurations: engines, the ledger, the channel of what was built."""
