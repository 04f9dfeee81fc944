"""The paper's evaluation, and ours beyond it: `comesh reproduce`.

Reading order: `campaign.py` (what an experiment is), one experiment such as `p01_candidates.py`,
`catalogue.py` (all of them), `reproduction.py` (how they are run), `report.py` (what comes of it).
`measures/` has what several experiments measure with.
"""
