"""Who may do what in a fleet: its certificates, and the signatures of its orders."""
