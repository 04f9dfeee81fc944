"""A few hundred seeds of the swarm, and the ones that once broke a promise.

A seed draws a mesh, its routines, and everything that goes wrong (`comesh.sim.swarm_case`); the promises are
judged by `comesh.sim.checks`. A failure names the command that replays it. Draws change with the swarm, so a
seed of the second kind may not meet its old fault any more.
"""

import pytest

from comesh.sim.swarm import Verdict, run_seed

BATCH = 12
BATCHES = 20

ONCE_BROKEN = {
    16: "a tombstone of the config that a member was still to be started in",
    17: "nobody made the members of a lossy election whole",
    39: "a member that was Ready, but never started, could not vote",
    48: "a timer that was due by a rounding error fired in its own instant for ever",
    51: "an era was opened after the handoff entry",
    456: "an election that claimed went back to asking",
    624: "a config was listed that the full disk had not taken",
    807: "the first rank counted its own Installed as another's",
    872: "each repeated Pull had another nonce, and the answers to the first were not taken",
    5114: "members without a state elected each other",
    10336: "going on alone was not told where a handoff was pending",
    10748: "a deployment version that could not be written left a gap",
    20279: "after an outage a run did its toggle again",
    20468: "a letter that was never sent, for it was not written, was sent again",
    31097: "an update that was due to be spread by a rounding error was spread in its own instant for ever",
    40067: "a seat counted as lost and as not whole",
    50040: "a member with a newer invitation was not given its seat",
}


def told(verdict: Verdict) -> str:
    violations = "\n".join(str(violation) for violation in verdict.broken)
    return f"{violations}\nreplay: comesh fuzz --seeds {verdict.seed}-{verdict.seed} --verbose"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_seeds_hold_every_promise(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        verdict = run_seed(seed)
        assert not verdict.broken, told(verdict)


@pytest.mark.parametrize("seed", sorted(ONCE_BROKEN))
def test_what_once_broke_stays_mended(seed: int) -> None:
    verdict = run_seed(seed)
    assert not verdict.broken, f"once: {ONCE_BROKEN[seed]}\n{told(verdict)}"


def test_a_seed_draws_and_does_the_same_every_time() -> None:
    assert run_seed(7) == run_seed(7)
    assert run_seed(7) != run_seed(8)


def test_the_swarm_is_busy() -> None:
    verdicts = [run_seed(seed) for seed in range(1000, 1012)]
    assert sum(verdict.runs for verdict in verdicts) > 50
    assert sum(verdict.commits for verdict in verdicts) > 500
    assert sum(verdict.faults for verdict in verdicts) > 100
