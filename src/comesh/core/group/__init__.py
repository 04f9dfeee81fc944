"""One replicated state per cluster: configs, ballots, leases, handoff, recovery (sections 3 to 5).

Read `config.py` and `phases.py` first: what a config is, and every role of a member. Then one config:

- `member.py`: the seat, its state in a `ledger.py`, and what it writes of it;
- `replica.py`: what a member does with messages and time; which ballots it heeds;
- `election.py`: how it comes to lead; `leadership.py`: leading, with what it knows of its `peers.py`;
- `handoff.py`: the way to the next config; `joining.py`: how a node comes to sit in one.

And a node with all of its groups: `groups.py`, what it serves (`serving.py`), messages between leaders
(`router.py`, `finder.py`), and deployment versions (`versions.py`).
"""
