"""What comes back from a host: events, packages in quarantine, and their way into the ledger."""
