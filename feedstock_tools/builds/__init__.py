"""Building configurations: engines, the ledger, the channel of built packages."""
