"""One replicated state per cluster: configs, ballots, leases, handoff, recovery (sections 3 to 5)."""
