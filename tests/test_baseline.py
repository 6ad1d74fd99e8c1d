"""The sequential program is played by a fake runner whose speed is known, so that times are exact."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from grader.base.errors import GraderFault, MachineFault
from grader.base.process import Completed
from grader.course.assignment import load_assignment
from grader.course.testcase import Case, load_suite
from grader.timing import baseline as module
from grader.timing.baseline import baseline_of, time_baseline

REPOSITORY = Path(__file__).parent.parent
HW4 = REPOSITORY / "testcases" / "hw4.yaml"


@dataclass
class Machine:
    """A compiler that always works and a program that takes `per_tile` seconds for a tile of 32 rows."""

    per_tile: float
    answer: str | None = None
    exit_code: int = 0
    compiles: bool = True
    version: str = "gcc 12.2.0"
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    cores: list[set[int]] = field(default_factory=list)

    def __call__(self, command: Sequence[str], folder: Path) -> Completed:
        if command[1:] == ["--version"]:
            return Completed(0, f"{self.version}\nmore\n")
        if "-lm" in command:
            if self.compiles:
                Path(command[command.index("-o") + 1]).touch()
            return Completed(0 if self.compiles else 1, "" if self.compiles else "seq.c:3: error: expected ';'")
        _, source, _, times, budget = command
        b, n, d = struct.unpack("<3i", Path(source).read_bytes()[:12])
        assert Path(source).stat().st_size == 12 + 12 * b * n * d
        self.inputs.append((b, n, d))
        self.cores.append(os.sched_getaffinity(0))
        total = b * n // 32
        done = min(total, int(float(budget) / self.per_tile) + 1)
        text = f"{done * self.per_tile} {done} {total}\n" if self.answer is None else self.answer
        Path(times).write_text(text)
        return Completed(self.exit_code, "")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_compiler", lambda: "/usr/bin/gcc")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "seq.c"
    path.write_text("int main(void) { return 0; }\n")
    return path


def case(*shape: int) -> Case:
    return replace(load_suite(HW4).cases["t01"], shape=shape)


def test_a_short_case_is_measured_whole(source):
    found = time_baseline(case(4, 128, 32), source=source, run=Machine(0.01))
    assert found.seconds == pytest.approx(0.16)
    assert (found.done, found.total, found.scaled, found.runs) == (16, 16, False, 6)
    assert found.describe().startswith("measured completely, fastest of 6 runs, the fastest 3 agree to 0.0%: 0.16 s (")
    assert f"core {found.core} of {found.cpu}, gcc 12.2.0, -O3, {found.date[:10]})" in found.describe()


def test_a_long_case_is_scaled_from_what_the_budget_allows(source):
    machine = Machine(0.1)
    found = time_baseline(case(100, 4096, 32), source=source, run=machine, budget_s=2)
    assert found.seconds == pytest.approx(0.1 * 100 * 128)
    assert found.total == 12800 and found.done == 4  # in each of six runs
    assert machine.inputs == [(2, 4096, 32)] * 6
    assert "0.4 s measured for 4 of 12,800 iterations of equal cost, 1280 s for all" in found.describe()


@dataclass
class Disturbed(Machine):
    """A machine whose runs take these many times as long, the last of them for ever."""

    slower: Sequence[float] = (1.0,)

    def __call__(self, command: Sequence[str], folder: Path) -> Completed:
        steady, self.per_tile = self.per_tile, self.per_tile * self.slower[min(len(self.inputs), len(self.slower) - 1)]
        try:
            return super().__call__(command, folder)
        finally:
            self.per_tile = steady


def test_runs_are_repeated_until_the_fastest_three_agree(source):
    slower = (1.5, 1.0, 1.3, 1.2, 1.015, 1.9, 1.01)
    found = time_baseline(case(100, 4096, 32), source=source, run=Disturbed(0.1, slower=slower), budget_s=2)
    assert found.runs == 7
    assert found.seconds == pytest.approx(1280)
    assert found.spread == pytest.approx(0.015)
    assert "fastest of 7 runs, the fastest 3 agree to 1.5%:" in found.describe()


def test_a_rate_that_stays_unknown_is_said_to_be(source):
    slower = [2.0 - 0.03 * number for number in range(30)]
    found = time_baseline(case(100, 4096, 32), source=source, run=Disturbed(0.1, slower=slower), budget_s=2)
    assert found.runs < 30 and found.spread > 0.02
    assert "not to 2%" in found.describe() and "another program was running" in found.describe()


def test_equal_loops_have_one_rate(tmp_path, monkeypatch):
    rules = load_assignment("hw4")
    machine = Machine(0.01)
    monkeypatch.setattr(module, "runner", lambda limit_s: machine)
    found = {name: baseline_of(rules, load_suite(HW4).cases[name]) for name in ("t20", "t22", "t30", "t21", "s01")}
    rate = {name: load_suite(HW4).cases[name].flops / one.seconds for name, one in found.items()}
    assert rate["t20"] == pytest.approx(rate["t22"]) == pytest.approx(rate["t30"])
    assert rate["s01"] == pytest.approx(rate["t21"])
    assert len(list((tmp_path / "cache" / "baseline").iterdir())) == 2, "one file for d = 32, one for d = 64"
    assert "whose loops are the same" in found["t30"].describe()


def test_only_as_many_batches_are_written_as_the_budget_needs(source):
    machine = Machine(0.001)
    found = time_baseline(case(13600, 128, 32), source=source, run=machine, budget_s=2)
    assert found.seconds == pytest.approx(0.001 * 13600 * 4)
    assert machine.inputs[0] == (2, 128, 32)
    assert 83 <= machine.inputs[-1][0] <= 167  # a sixth of the budget is 0.33 s: 83 batches of four tiles


def test_a_sample_never_outgrows_its_limit(source, monkeypatch):
    monkeypatch.setattr(module, "MAX_SAMPLE_BYTES", 1 << 20)
    machine = Machine(1e-6)
    found = time_baseline(case(13600, 128, 32), source=source, run=machine, budget_s=2)
    assert max(b for b, _, _ in machine.inputs) == (1 << 20) // (12 * 128 * 32)
    assert found.scaled and found.seconds == pytest.approx(1e-6 * 13600 * 4)


def test_each_run_is_on_one_core_and_the_grader_gets_its_cores_back(source):
    before = os.sched_getaffinity(0)
    machine = Machine(0.01)
    found = time_baseline(case(4, 128, 32), source=source, run=machine)
    assert all(len(cores) == 1 for cores in machine.cores)
    assert found.core in before and len(set().union(*machine.cores)) == min(len(before), module.CORES)
    assert os.sched_getaffinity(0) == before


def test_a_time_is_kept_until_something_it_depends_on_changes(source):
    machine = Machine(0.01)
    first = time_baseline(case(4, 128, 32), source=source, run=machine)
    runs = len(machine.inputs)
    assert time_baseline(case(4, 128, 32), source=source, run=machine) == first
    assert len(machine.inputs) == runs
    faster = Machine(0.005)
    again = time_baseline(case(4, 128, 32), source=source, run=faster, refresh=True)
    assert again.seconds == pytest.approx(0.08)
    for changed in ({"flags": ("-O2",)}, {"budget_s": 1.0}, {"run": Machine(0.02, version="gcc 13")}):
        arguments = {"run": Machine(0.02)} | changed
        assert time_baseline(case(4, 128, 32), source=source, **arguments).seconds == pytest.approx(0.32)
    source.write_text("int main(void) { return 1; }\n")
    assert time_baseline(case(4, 128, 32), source=source, run=Machine(0.04)).seconds == pytest.approx(0.64)


def test_a_damaged_cache_is_measured_again(source, tmp_path):
    time_baseline(case(4, 128, 32), source=source, run=Machine(0.01))
    (kept,) = (tmp_path / "cache" / "baseline").iterdir()
    kept.write_text(kept.read_text()[:50])
    assert time_baseline(case(4, 128, 32), source=source, run=Machine(0.02)).seconds == pytest.approx(0.32)


def test_a_cache_that_cannot_be_written_does_not_lose_the_measurement(source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "file"))
    assert time_baseline(case(4, 128, 32), source=source, run=Machine(0.01)).seconds == pytest.approx(0.16)


@pytest.mark.parametrize("answer", ["", "nan 1 1", "1.0 0 4", "1.0 5 4", "0 4 4", "-1 4 4", "fast", "1 2 3 4"])
def test_a_program_that_breaks_its_contract_is_the_graders_fault(source, answer):
    with pytest.raises(GraderFault, match="broke its contract"):
        time_baseline(case(4, 128, 32), source=source, run=Machine(0.01, answer=answer))


def test_a_program_that_fails_is_the_graders_fault(source):
    with pytest.raises(GraderFault, match=r"must exit with 0 \(found 3\)"):
        time_baseline(case(4, 128, 32), source=source, run=Machine(0.01, exit_code=3))


def test_a_program_that_does_not_compile_shows_the_compilers_words(source):
    with pytest.raises(GraderFault, match=r"does not compile.*\n.*expected ';'"):
        time_baseline(case(4, 128, 32), source=source, run=Machine(0.01, compiles=False))


def test_without_gcc_the_machine_is_at_fault(source, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MachineFault, match="gcc is not on PATH"):
        time_baseline(case(4, 128, 32), source=source, run=Machine(0.01))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_sequential_program_of_hw4_keeps_the_contract():
    source = REPOSITORY / "reference" / "hw4" / "seq_flash_attention.c"
    whole = time_baseline(case(2, 128, 32), source=source, budget_s=0.2)
    assert (whole.done, whole.total) == (8, 8) and whole.seconds > 0
    sampled = time_baseline(case(2, 4096, 64), source=source, budget_s=0.05)
    assert sampled.scaled and sampled.total == 256
    assert sampled.seconds == pytest.approx(sampled.measured_seconds * 256 / sampled.done)
