"""The sequential program is played by a fake runner whose speed is known, so that times are exact."""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cudaemu.process import Completed
from grader.base.errors import GraderFault, MachineFault
from grader.commands.course_files import show_baseline
from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.timing import baseline as module
from grader.timing import sequential
from grader.timing.baseline import Baseline, baseline_of, measured_again

REPOSITORY = Path(__file__).parent.parent
HW4 = REPOSITORY / "testcases" / "hw4.yaml"
ATTENTION = load_suite(HW4).cases["t01"]

AS_THEY_ARE = {name: getattr(sequential, name) for name in ("LEAST_RUNS", "AGREED", "RUNS_IN_BUDGET")}
"""conftest.py changes them."""


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
        _, source, _, times, _ = command
        b, n, d = struct.unpack("<3i", Path(source).read_bytes()[:12])
        assert Path(source).stat().st_size == 12 + 12 * b * n * d
        self.inputs.append((b, n, d))
        self.cores.append(os.sched_getaffinity(0))
        text = f"{self.per_tile} 1 {b * n // 32}\n" if self.answer is None else self.answer
        Path(times).write_text(text)
        return Completed(self.exit_code, "")


def on_machine(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    monkeypatch.setattr(module, "linker", lambda limit_s: machine)
    monkeypatch.setattr(sequential, "runner", lambda limit_s: machine)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    for name, value in AS_THEY_ARE.items():
        monkeypatch.setattr(sequential, name, value)
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    for using in (module, sequential):
        monkeypatch.setattr(using, "compiler", lambda: "/usr/bin/gcc")


@pytest.fixture
def timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Baseline]:
    """Times a shape on a machine."""
    (tmp_path / "seq.c").write_text("int main(void) { return 0; }\n")
    monkeypatch.setattr("grader.course.assignment.Assignment.reference_folder", property(lambda self: tmp_path))
    rules = load_assignment("hw4")

    def on(shape: tuple[int, ...], machine: Machine, *, again: bool = False, **changes: object) -> Baseline:
        own = {"source": "seq.c", "rate_by": (), **changes}
        own_rules = rules.model_copy(update={"baseline": rules.baseline.model_copy(update=own)})
        on_machine(monkeypatch, machine)
        sequential.own_compiler_version.cache_clear()
        case = replace(ATTENTION, shape=shape)
        return measured_again(own_rules, [case])[0][2] if again else baseline_of(own_rules, case)

    return on


def test_the_time_is_scaled_from_the_fastest_slice(timed):
    machine = Machine(0.1)
    found = timed((1000, 4096, 32), machine)
    assert found.seconds == pytest.approx(0.1 * 1000 * 128)
    assert (found.rate.iterations, found.rate.total, found.rate.runs) == (1, 128_000, sequential.LEAST_RUNS)
    assert machine.inputs == [(21, 4096, 32)] * sequential.LEAST_RUNS, "32 MiB, not the whole input of 1.6 GB"
    said = found.describe()
    assert said.startswith(f"1.28e+04 s by baseline {found.id}: 0.1 s for 1 of 128,000 iterations of equal cost, the")
    assert f"core {found.rate.core} of {found.cpu}, gcc 12.2.0, -O3, {found.date[:10]})" in said


def test_a_short_case_is_written_whole(timed):
    machine = Machine(0.01)
    assert timed((4, 128, 32), machine).seconds == pytest.approx(0.16)
    assert set(machine.inputs) == {(4, 128, 32)}


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


def test_runs_are_repeated_until_the_fastest_three_agree(timed):
    slower = (1.5, 1.0, 1.3, 1.2, 1.1, 1.3, 1.4, 1.004, 1.9, 1.003)
    found = timed((100, 4096, 32), Disturbed(0.1, slower=slower))
    assert found.rate.runs == 10
    assert found.seconds == pytest.approx(1280)
    assert found.rate.spread == pytest.approx(0.004)
    assert "fastest slice of 10 runs, the fastest 3 of which agree to 0.4% (core" in found.describe()


def test_a_rate_that_stays_unknown_is_said_to_be(timed):
    slower = [4.0 - 0.03 * number for number in range(90)]
    found = timed((100, 4096, 32), Disturbed(0.1, slower=slower))
    assert found.rate.runs == 80 and found.rate.spread > 0.02
    assert "not to 2%" in found.describe() and "other programs were running" in found.describe()


def test_equal_loops_have_one_rate(tmp_path, monkeypatch):
    rules = load_assignment("hw4")
    machine = Machine(0.01)
    on_machine(monkeypatch, machine)
    found = {name: baseline_of(rules, load_suite(HW4).cases[name]) for name in ("t20", "t22", "t30", "t21", "s01")}
    rate = {name: load_suite(HW4).cases[name].flops / one.seconds for name, one in found.items()}
    assert rate["t20"] == pytest.approx(rate["t22"]) == pytest.approx(rate["t30"])
    assert rate["s01"] == pytest.approx(rate["t21"])
    assert len({one.id for one in found.values()}) == 2
    assert len(list((tmp_path / "cache" / "baseline").iterdir())) == 2, "one file for d = 32, one for d = 64"
    assert "whose loops are the same" in found["t30"].describe()


def test_each_run_is_on_one_core_and_the_grader_gets_its_cores_back(timed):
    before = os.sched_getaffinity(0)
    machine = Machine(0.01)
    found = timed((4, 128, 32), machine)
    assert all(len(cores) == 1 for cores in machine.cores)
    assert found.rate.core in before and len(set().union(*machine.cores)) == min(len(before), sequential.CORES)
    assert os.sched_getaffinity(0) == before


def test_a_baseline_is_a_fact_until_something_it_depends_on_changes(timed, tmp_path):
    machine = Machine(0.01)
    first = timed((4, 128, 32), machine)
    runs = len(machine.inputs)
    assert timed((4, 128, 32), machine) == first
    assert timed((4, 128, 32), Machine(0.005)) == first, "a busy or an idle machine changes nothing"
    assert len(machine.inputs) == runs
    for changed, other in (({"flags": ("-O2",)}, Machine(0.02)), ({}, Machine(0.02, version="gcc 13"))):
        assert timed((4, 128, 32), other, **changed).seconds == pytest.approx(0.32)
    (tmp_path / "seq.c").write_text("int main(void) { return 1; }\n")
    assert timed((4, 128, 32), Machine(0.04)).seconds == pytest.approx(0.64)


def test_measuring_again_keeps_the_faster_time(timed):
    first = timed((4, 128, 32), Machine(0.01))
    slower = timed((4, 128, 32), Machine(0.02), again=True)
    assert slower.seconds == pytest.approx(0.32)
    assert timed((4, 128, 32), Machine(0.01)) == first
    faster = timed((4, 128, 32), Machine(0.005), again=True)
    assert timed((4, 128, 32), Machine(0.01)) == faster and faster.id != first.id


def test_the_command_says_what_changes(monkeypatch):
    machine = Machine(0.01)
    on_machine(monkeypatch, machine)
    assert re.search(r"t21 +500 x 2048 x 32 +640.000 +", show_baseline("t21", assignment="hw4", refresh=False))
    machine.per_tile = 0.012
    said = show_baseline("t21..t23", assignment="hw4", refresh=True)
    assert "(+20.0%). " in said and "stays, since whatever disturbs a measurement makes it slower." in said
    machine.per_tile = 0.008
    assert "from now on, speedups are 20.0% lower." in show_baseline("t21", assignment="hw4", refresh=True)


def test_a_damaged_cache_is_measured_again(timed, tmp_path):
    timed((4, 128, 32), Machine(0.01))
    (kept,) = (tmp_path / "cache" / "baseline").iterdir()
    kept.write_text(kept.read_text()[:50])
    assert timed((4, 128, 32), Machine(0.02)).seconds == pytest.approx(0.32)


def test_a_cache_that_cannot_be_written_does_not_lose_the_measurement(timed, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "file"))
    assert timed((4, 128, 32), Machine(0.01)).seconds == pytest.approx(0.16)


@pytest.mark.parametrize("answer", ["", "nan 1 1", "1.0 0 4", "1.0 1 0", "0 4 4", "-1 4 4", "fast", "1 2 3 4"])
def test_a_program_that_breaks_its_contract_is_the_graders_fault(timed, answer):
    with pytest.raises(GraderFault, match="broke its contract"):
        timed((4, 128, 32), Machine(0.01, answer=answer))


def test_a_program_that_fails_is_the_graders_fault(timed):
    with pytest.raises(GraderFault, match=r"must exit with 0 \(found 3\)"):
        timed((4, 128, 32), Machine(0.01, exit_code=3))


def test_a_program_that_does_not_compile_shows_the_compilers_words(timed):
    with pytest.raises(GraderFault, match=r"does not compile.*\n.*expected ';'"):
        timed((4, 128, 32), Machine(0.01, compiles=False))


def test_without_gcc_the_machine_is_at_fault(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MachineFault, match="gcc is not on PATH"):
        baseline_of(load_assignment("hw4"), load_suite(HW4).cases["s01"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_sequential_program_of_hw4_keeps_the_contract(tmp_path):
    source = REPOSITORY / "reference" / "hw4" / "seq_flash_attention.c"
    program, times = tmp_path / "seq", tmp_path / "times"
    subprocess.run(["gcc", "-O3", f"-I{source.parent.parent}", source, "-o", program, "-lm"], check=True)
    sequential.write_sample(ATTENTION.operator, (2, 128, 32), 2, ATTENTION.distribution, tmp_path / "in")
    for budget, written in (("0.05", False), ("0", True)):
        subprocess.run([program, tmp_path / "in", tmp_path / "out", times, budget], check=True)
        seconds, iterations, total = times.read_text().split()
        assert int(total) == 8 and (tmp_path / "out").exists() is written
        assert 1e-6 < float(seconds) / int(iterations) < 1e-2
    assert int(iterations) == 8
