"""Whole programs give the same output, to the last bit, and the same findings on every processor.

The programs: the conformance suite, the model solutions and the wrong ones of every assignment, these on all practice
tests (on Arm, and of --share, on the smallest). What is equal to the last bit has the same verdict.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from emulator.tests import programs
from emulator.tests.programs import CONFORMANCE_FLAGS, Execution, build, execute, names_in, target_of
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.testcase import load_suite
from tests.isa.machines import HERE, OTHERS, Machine
from tests.support.assignments import assignment_of
from tests.support.command_line import grader
from tests.support.course import ROOT
from tools.emulator_fuzz.program import write_program

CONFORMANCE = sorted((programs.HERE / "conformance").glob("*.cu"))
MODELS = sorted(ROOT.glob("reference/*/*.cu"))
WRONG = sorted(ROOT.glob("reference/*/wrong/*.cu"))
pytestmark = pytest.mark.timeout(900)  # two compilations, and qemu
SHARE = {
    "avx2": tuple(f"emulator/tests/conformance/{name}.cu" for name in ("memory", "tensor", "control")),
    "neon": ("reference/softmax/online.cu",),
}
"""What the functions' comparison and a graded solution leave: memory accesses, tensor cores, divergence; and host code
of another processor."""


def cases(share: bool) -> list[tuple[Machine, Path]]:
    if share:
        return [(machine, ROOT / name) for machine in OTHERS for name in SHARE.get(machine.name, ())]
    every = [(machine, source) for source in (*CONFORMANCE, *MODELS) for machine in OTHERS]
    return every + [(machine, source) for source in WRONG for machine in OTHERS if machine.name != "neon"]


GENERATED = {"groups": 2, "vectors": 4, "parameters": 4}
"""Kernels of tools/emulator_fuzz, with which many more of them are tried: --isas."""


@dataclass(frozen=True)
class Outcome:
    """What must not depend on the processor."""

    exit_code: int
    printed: str
    output: bytes
    findings: tuple[str, ...]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "source" in metafunc.fixturenames:
        chosen = cases(metafunc.config.getoption("share"))
        ids = [f"{machine.name}-{source.relative_to(ROOT)}" for machine, source in chosen]
        metafunc.parametrize(("machine", "source"), chosen, ids=ids)
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", [] if metafunc.config.getoption("share") else GENERATED)


def test_a_program_gives_the_same_everywhere(
    machine: Machine, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    share = request.config.getoption("share") or machine.name == "neon"
    runs: list[tuple[str, ...]] = [(name,) for name in names_in(source)]
    if source not in CONFORMANCE:
        runs = [(str(file), "output") for file in practice_inputs(source, tmp_path, smallest=share)]
    expected = outcomes(HERE, source, runs, tmp_path)
    machine.enter(monkeypatch)
    for run, here, there in zip(runs, expected, outcomes(machine, source, runs, tmp_path), strict=True):
        assert there == here, run


@pytest.mark.parametrize("machine", OTHERS[:2], ids=lambda machine: machine.name)
def test_a_model_solution_passes_every_practice_test(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs could agree on what is wrong; grading compares with the reference in C."""
    machine.enter(monkeypatch)
    said = grader("grade", "reference/hw4/tiled.cu", "--engine", "emulator")
    assert said.code == 0, said.err
    assert "0 of 8 practice tests failed" in said.out


@pytest.mark.parametrize("machine", OTHERS, ids=lambda machine: machine.name)
def test_a_generated_program_gives_the_hosts_results(
    machine: Machine, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.enter(monkeypatch)
    program = build(write_program(tmp_path, 1, {kind: GENERATED[kind]}), flags=CONFORMANCE_FLAGS)
    done = execute(program, folder=tmp_path, timeout_s=60 * machine.slower)
    assert (done.exit_code, done.output, done.findings()) == (0, "ok\n", [])


def outcomes(machine: Machine, source: Path, runs: list[tuple[str, ...]], folder: Path) -> list[Outcome]:
    program = build(source, flags=CONFORMANCE_FLAGS, target=target_of(source))
    return [
        outcome(
            folder, execute(program, *run, folder=folder, timeout_s=60 * machine.slower, GRADER_EMULATOR_THREADS="1")
        )
        for run in runs
    ]


def outcome(folder: Path, done: Execution) -> Outcome:
    file = folder / "output"
    output = file.read_bytes() if file.exists() else b""
    file.unlink(missing_ok=True)
    findings = tuple(re.sub(r"0x[0-9a-f]+", "0x…", f"{d['is']} {d['line']} {d['facts']}") for d in done.findings())
    return Outcome(done.exit_code, done.output, output, findings)


def practice_inputs(source: Path, folder: Path, *, smallest: bool) -> list[Path]:
    """Inputs of the public testcases of the assignment that a solution belongs to."""
    suite = load_suite(load_assignment(assignment_of(source)).testcases_file)
    cases = sorted(suite.select("public"), key=lambda case: case.flops)
    files = replace(TestcaseFiles.beside(suite), folder=folder / "testcases")
    for case in cases[: 1 if smallest else None]:
        generate(case, files, suite.seed(case), lambda done, total: None)
    return [files.input(case) for case in cases[: 1 if smallest else None]]
