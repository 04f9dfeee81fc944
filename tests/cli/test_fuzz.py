"""`comesh fuzz`: what it prints, what it keeps, how it goes on, and the smaller case that it finds."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from comesh.cli import fuzz_findings, fuzz_state
from comesh.cli.fuzz_findings import Broken, Finding, SwarmKind, run_groups
from comesh.cli.fuzz_state import State
from comesh.cli.main import app
from comesh.cli.terminal import number
from comesh.core.group.leadership import Leadership
from comesh.core.step import Step
from comesh.sim.membership_swarm import Verdict


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state is kept."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["fuzz", *arguments])
    return result.exit_code, result.output


count = Leadership._count


def commit_alone(self: Leadership, step: Step) -> None:
    """Without waiting for a quorum: what the checks are there to find."""
    count(self, step)
    number = self.member.ledger.number
    if self.serving is not None and number > self.committed:
        self._commit(number, step)


def test_a_seed_is_run_and_summed_up() -> None:
    code, output = run("--seeds", "1", "--verbose")
    assert code == 0, output
    assert "seed 1:" in output
    assert "1 seed: 0 with a broken promise" in output
    for text in ("radio: hop ", "protocol: lease ", "routines: ", "asked by people: ", "faults: "):
        assert text in output
    assert "Settings(" not in output
    assert "CPU per seed: median " in output
    assert " lossy elections" in output


def test_the_swarm_of_membership() -> None:
    code, output = run("--seeds", "2", "--membership", "--verbose")
    assert code == 0, output
    assert "membership probes" in output
    assert "clocks: off by up to " in output
    assert "1 seed: 0 with a broken promise" in output
    assert "lossy" not in output


def test_machines_get_json_also_from_several_processes() -> None:
    code, output = run("--seeds", "6-7", "--jobs", "2", "--json")
    assert code == 0, output
    answer = json.loads(output)
    assert answer["seeds"] == 2
    assert answer["swarm"] == "groups"
    assert answer["faults"] > 0
    assert answer["commits"] > 0
    assert 0 < answer["cpu_s"]["median"] <= answer["cpu_s"]["percentile_95"] <= answer["cpu_s"]["total"]


def test_the_time_is_over_before_a_seed_was_run() -> None:
    code, output = run("--minutes", "1e-9", "--jobs", "1", "--json")
    assert code == 2
    assert "no seed was run" in output


def test_what_was_done_is_not_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def noted(seed: int) -> Finding:
        ran.append(seed)
        return Finding(seed=seed, cpu_s=1.0, faults=seed, runs=10)

    monkeypatch.setitem(fuzz_findings.RUN, SwarmKind.GROUPS, noted)
    assert run("--seeds", "2-3", "--jobs", "1")[0] == 0
    code, output = run("--seeds", "1-4", "--jobs", "1", "--resume")
    assert code == 0
    assert ran == [2, 3, 1, 4]
    assert "4 seeds (2 of them before)" in output
    assert "10 faults, 40 runs" in output
    run("--seeds", "1-2", "--jobs", "1")
    assert ran == [2, 3, 1, 4, 1, 2], "without --resume they are run again"
    with State(Path(".comesh-fuzz.json"), SwarmKind.GROUPS) as state:
        assert len(state.found) == 4, "and none is lost"


def test_other_code_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fuzz_findings.RUN, SwarmKind.GROUPS, lambda seed: Finding(seed=seed, cpu_s=1.0))
    run("--seeds", "1-3", "--jobs", "1", "--state", "state")
    monkeypatch.setattr(fuzz_state, "code_digest", lambda: "other")
    code, output = run("--seeds", "1-1", "--jobs", "1", "--resume", "--state", "state")
    assert code == 0
    assert "3 results of other code do not count" in output
    assert "1 seed: 0" in output
    assert len(Path("state").read_text().splitlines()) == 1


def test_a_line_cut_short_is_passed_over() -> None:
    path = Path("state")
    with State(path, SwarmKind.GROUPS) as state:
        state.add(Finding(seed=1, cpu_s=1.0))
        state.add(Finding(seed=2, cpu_s=1.0))
    path.write_bytes(path.read_bytes()[:-5])
    with State(path, SwarmKind.GROUPS) as state:
        assert set(state.found) == {1}
        state.add(Finding(seed=3, cpu_s=1.0))
    with State(path, SwarmKind.GROUPS) as state:
        assert set(state.found) == {1, 3}
    with State(path, SwarmKind.MEMBERSHIP) as state:
        assert not state.found


def test_a_file_of_somebody_else_is_left_alone() -> None:
    Path("notes").write_text("dear diary")
    code, output = run("--seeds", "1", "--state", "notes")
    assert code == 2
    assert "notes exists and is not a state of comesh fuzz" in output
    assert Path("notes").read_text() == "dear diary"


def wait_for(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Until it holds; the process must not end before."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that within a minute"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
            pytest.fail(f"it ended with {process.returncode}")


def test_ctrl_c_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from comesh.cli.main import main; main()", "fuzz", "--minutes", "5"]
    process = subprocess.Popen(
        [*command, "--jobs", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    state = tmp_path / ".comesh-fuzz.json"
    wait_for(process, lambda: state.exists() and state.stat().st_size > 0)
    os.kill(process.pid, signal.SIGINT)
    output, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, output + complaints
    assert "Traceback" not in complaints
    assert "--resume goes on from here" in output
    done = len(state.read_text().splitlines())
    assert done > 0
    assert f"{number(done, 'seed')}: " in output


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="which processes it started stands in /proc")
def test_ctrl_c_while_processes_still_start_is_a_quiet_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from comesh.cli.main import main; main()", "fuzz", "--seeds", "1-500"]
    process = subprocess.Popen(
        [*command, "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for(process, lambda: len(children.read_text().split()) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    output, complaints = process.communicate(timeout=60)
    assert process.returncode == 130, output + complaints
    assert complaints == "stopping: seeds under way are finished first; Ctrl-C again: at once\n"


def test_a_broken_promise_prints_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "_count", commit_alone)
    code, output = run("--seeds", "3", "--jobs", "1")
    assert code == 1
    assert "committed by a quorum, at " in output
    assert "replay: comesh fuzz --seeds 3-3 --verbose" in output
    assert "is serving at" not in output, "the history is for --verbose"
    code, output = run("--seeds", "3", "--jobs", "1", "--verbose")
    assert code == 1
    assert "is serving at" in output
    code, output = run("--seeds", "3", "--jobs", "1", "--resume", "--json")
    assert code == 1, "what broke before counts"
    (broken,) = json.loads(output)["broken"]
    assert broken["replay"] == "comesh fuzz --seeds 3-3 --verbose"


def test_membership_says_so_in_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = Verdict(
        seed=7, nodes=3, faults=1, events=9, recovered_after_s=None, broken=("n1 buried n2, which runs",)
    )
    monkeypatch.setattr(fuzz_findings.membership_swarm, "run_seed", lambda seed: verdict)
    code, output = run("--seeds", "7", "--membership")
    assert code == 1
    assert "n1 buried n2, which runs" in output
    assert "replay: comesh fuzz --seeds 7-7 --membership --verbose" in output


def test_code_that_crashes_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(self: Leadership, step: Step) -> None:
        raise ZeroDivisionError("counting went wrong")

    monkeypatch.setattr(Leadership, "_count", crash)
    finding = run_groups(1)
    assert finding.broken[0].promise == "crash"
    assert finding.broken[0].what == "ZeroDivisionError: counting went wrong"
    assert any("leadership.py" in line for line in finding.broken[0].history)


def test_a_smaller_case_is_found_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Leadership, "_count", commit_alone)
        code, output = run("--shrink", "3")
        assert code == 1
        assert re.search(r"seed 3: 0 of \d+ faults and 0 of \d+ askings", output), "it breaks without any"
        assert "replay: comesh fuzz --replay fuzz-seed-3.json" in output
        code, output = run("--replay", "fuzz-seed-3.json")
        assert code == 1
        assert "faults: 0" in output
        assert "committed by a quorum, at " in output
        code, output = run("--replay", "fuzz-seed-3.json", "--json")
        assert code == 1
        assert json.loads(output)["case"]["seed"] == 3
    code, output = run("--replay", "fuzz-seed-3.json")
    assert code == 0, output
    assert "every promise held; it was written because this broke: committed by a quorum" in output


def test_nothing_to_shrink() -> None:
    code, output = run("--shrink", "1")
    assert code == 2
    assert "seed 1 breaks no promise" in output
    assert not Path("fuzz-seed-1.json").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hello", "is not a case that --shrink wrote"),
        ('{"seed": 1}', "is not a case that --shrink wrote"),
        (
            '{"seed": 1, "promise": "", "faults": [], "of_faults": 999, "askings": [], "of_askings": 0}',
            "another version of the swarm",
        ),
    ],
)
def test_wrong_cases_are_refused(text: str, complaint: str) -> None:
    Path("case.json").write_text(text)
    code, output = run("--replay", "case.json")
    assert code == 2
    assert complaint in " ".join(output.split())
    code, output = run("--replay", "no/such/case")
    assert code == 2
    assert "--replay no/such/case: there is no such file" in output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--seeds", "x"),
        ("--seeds", "9-3"),
        ("--seeds", "1", "--minutes", "1"),
        ("--seeds", "1", "--replay", "x"),
        ("--shrink", "1", "--membership"),
        ("--minutes", "-1"),
        ("--minutes", "0"),
        ("--minutes", "nan"),
    ],
)
def test_wrong_calls_say_what_is_expected(arguments: tuple[str, ...]) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert "--seeds" in output


def test_a_line_of_a_broken_promise() -> None:
    assert Broken("5 progress", "nobody serves c1", 1500.0).line == "5 progress, at 1.500 s: nobody serves c1"
    assert Broken("membership", "n1 is lonely").line == "membership: n1 is lonely"


def test_shrink_and_replay_say_what_they_expect() -> None:
    code, output = run("--shrink", "abc")
    assert (code, output) == (
        2,
        "comesh: --shrink abc: expected the number of a seed that breaks a promise, such as 42\n",
    )
    code, output = run("--replay", "nofile")
    assert code == 2
    assert output.startswith("comesh: --replay nofile: there is no such file; --shrink SEED writes one")


def test_one_seed_is_one_seed() -> None:
    _, output = run("--seeds", "1", "--jobs", "1")
    assert "1 seed: " in output


def test_the_help_has_the_exit_code_of_ctrl_c() -> None:
    assert "130" in run("--help")[1]


def test_the_swarm_of_operations_runs_for_simulated_hours() -> None:
    code, output = run("--operations", "--hours", "0.01", "--jobs", "1", "--verbose")
    assert code == 0, output
    assert "1 seed: 0 with a broken promise" in output
    assert " simulated hours" in output
    assert "people: " in output
    assert "orders done" in output
    assert "asked by people: " in output


def test_operations_says_so_in_its_replay_and_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leadership, "_count", commit_alone)
    code, output = run("--seeds", "3", "--operations", "--jobs", "1")
    assert code == 1
    assert "replay: comesh fuzz --seeds 3-3 --operations --verbose" in output
    code, output = run("--shrink", "3", "--operations")
    assert code == 1
    assert re.search(r"seed 3: \d+ of \d+ faults and \d+ of \d+ askings", output)
    code, output = run("--replay", "fuzz-seed-3.json", "--json")
    assert code == 1
    assert json.loads(output)["case"]["swarm"] == "operations"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--hours", "0"), "--hours 0: expected more than 0"),
        (("--hours", "1", "--minutes", "1"), "say one of --seeds A-B, --minutes M, --hours H"),
        (("--seeds", "1", "--membership", "--operations"), "two swarms: say one of them"),
        (("--shrink", "1", "--membership"), "its seeds are not shrunk"),
    ],
)
def test_what_does_not_go_together(arguments: tuple[str, ...], complaint: str) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert complaint in " ".join(output.split())
