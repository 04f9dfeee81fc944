"""One replicated state per cluster: configs, ballots, leases, handoff, recovery (protocol, sections 3 to 5)."""
