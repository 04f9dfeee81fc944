"""The stages of a run, and every transition between them.

`moved` allows only the transitions of this table, and docs/protocol.md draws its diagram from it. A run
without a record is NOT_TRIGGERED: firing puts its record, ending drops it.
"""

from msgspec.structs import replace

from comesh.core.records import RunRecord, Stage

DOES = {
    Stage.ACQUIRING_LOCKS: "asks for its locks, attempt by attempt; woundable",
    Stage.EXECUTING: "holds every lock: commands its devices, step by step; not woundable",
    Stage.RELEASING_LOCKS: "gives back what it may have, until each device's group acknowledged",
}

TRANSITIONS: dict[tuple[Stage | None, Stage | None], str] = {
    (None, Stage.ACQUIRING_LOCKS): "fired",
    (Stage.ACQUIRING_LOCKS, Stage.EXECUTING): "every lock is held (after an outage: confirmed)",
    (Stage.ACQUIRING_LOCKS, Stage.RELEASING_LOCKS): "no such device; or an outage lost its locks",
    (Stage.EXECUTING, Stage.ACQUIRING_LOCKS): "its group had an outage: its locks must be confirmed",
    (Stage.EXECUTING, Stage.RELEASING_LOCKS): "all steps done; or one failed; or a lock was lost",
    (Stage.RELEASING_LOCKS, None): "everything is given back",
}
"""Transitions and their names; None: there is no run."""


def moved(run: RunRecord, stage: Stage) -> RunRecord:
    """Returns the run in this stage."""
    assert stage is run.stage or (run.stage, stage) in TRANSITIONS, (
        f"no transition from {run.stage} to {stage}"
    )
    return replace(run, stage=stage)
