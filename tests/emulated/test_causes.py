"""What a student reads about findings of the emulator. The programs are those of its own tests."""

import re
from pathlib import Path

import numpy as np
import pytest

from emulator.tests.programs import CHECKS, HERE, build, execute
from emulator.tests.seeded_bugs import SeededBug, programs_in, run, seeded_bugs
from emulator.tests.test_uninitialised import LINES, SOURCE
from grader.findings import KINDS, advice, detail, fact
from grader.grading.closer_look import in_a_right_program
from grader.programs.host_lines import with_lines
from grader.programs.stubs import STUB_HEADERS
from grader.programs.trace import read_trace
from tests.support.causes import cause_of
from tests.support.course import ROOT

RACES = [(source, name) for source in sorted((HERE / "races").glob("*.cu")) for name in programs_in(source)]


def lines_of(source: Path, name: str) -> set[str]:
    """The lines marked as this program's, as file:line."""
    lines = source.read_text().splitlines()
    return {f"{source.name}:{number}" for number, line in enumerate(lines, 1) if line.endswith(f"// RACE {name}")}


def cause(source: Path, name: str, folder: Path) -> str:
    run(source, name, folder)
    found = read_trace(folder / "trace.jsonl").findings
    return cause_of(found, [(str(source), source.read_bytes())]).replace(f"{source.parent}/", "")


@pytest.mark.parametrize(("source", "name"), RACES, ids=[name for _, name in RACES])
def test_the_cause_of_a_racing_program_is_the_race_with_both_its_lines(source: Path, name: str, tmp_path: Path) -> None:
    said = cause(source, name, tmp_path)
    assert said.startswith("Race: "), said
    accesses, _, _advice = said.partition("put __syncthreads()")
    named = set(re.findall(rf"{source.stem}\.cu:\d+", accesses))
    marked = lines_of(source, name)
    assert named <= marked, said
    assert len(named) == 2 or len(marked) == 1, said
    assert "__syncwarp" not in said


@pytest.mark.parametrize("name", LINES)
def test_the_cause_of_a_right_program_with_an_uninitialised_read_is_that_read(name: str, tmp_path: Path) -> None:
    execute(build(SOURCE, watch=True), name, folder=tmp_path)
    cause = cause_of(in_a_right_program(read_trace(tmp_path / "trace.jsonl").findings))
    assert f"reads.cu:{LINES[name]}: " in cause and " read " in cause


SENTENCES = {
    ("faults.cu", "one_lane_outside"): "12 bytes past the end of the 256 bytes of cudaMalloc at faults.cu:53",
    ("faults.cu", "misaligned"): "must be a multiple of 16",
    ("faults.cu", "use_after_free"): "which was freed before",
    ("faults.cu", "freed_host_memory"): "memory that was freed at faults.cu:88",
    ("faults.cu", "copy_not_awaited"): "while the cudaMemcpyAsync at faults.cu:98 may still be writing them",
    ("faults.cu", "copy_in_another_stream"): "does not wait for kernel plain, launched at faults.cu:96",
    ("faults.cu", "lock_in_a_function"): "waits in the loop at this line, in a function",
    ("faults.cu", "deadlock"): "deadlock: 2 of 2 warps wait",
    ("faults.cu", "host_dereference"): "dereferenced a device pointer, at offset 20 of the 256 bytes of cudaMalloc",
    ("seeded/async_copies.cu", "wait_behind_the_barrier"): "wait for the copy (__pipeline_wait_prior(0)), then put",
    ("seeded/shared_races.cu", "missing_barrier_after_store"): "while another warp still reads it at shared_races.cu:7",
    ("seeded/bounds.cu", "dynamic_shared_not_asked_for"): "past the end of the dynamic shared memory s (64 bytes)",
}


def said(source: Path, name: str, folder: Path) -> str:
    """The sentences on a program's findings, with advice and details."""
    done = run(source, name, folder, leaks=name == "leak")
    found = with_lines(read_trace(folder / "trace.jsonl").findings, done.program)
    assert found and all(advice(each) for each in found)
    return " ".join(part for each in found for part in (fact(each), advice(each), detail(each)))


@pytest.mark.parametrize(("source", "name"), SENTENCES)
def test_a_finding_is_said_with_its_facts(source: str, name: str, tmp_path: Path) -> None:
    assert SENTENCES[source, name] in said(HERE / source, name, tmp_path)


@pytest.mark.parametrize("bug", [bug for bug in seeded_bugs() if not bug.source.stem.startswith("hopper")], ids=str)
def test_no_sentence_lacks_a_fact(bug: SeededBug, tmp_path: Path) -> None:
    assert not re.search(r"[{}]|\bNone\b", said(bug.source, bug.name, tmp_path))


def test_the_emulators_tests_name_the_check_of_a_kind_as_the_catalogue_does() -> None:
    assert [kind for check, kinds in CHECKS.items() for kind in kinds.split() if KINDS[kind].check != check] == []


@pytest.mark.parametrize("name", ["tiled", "flash2"])
def test_nothing_is_reported_about_a_model_solution_not_even_a_leak(name: str, tmp_path: Path) -> None:
    flags = ("-O3", f"-isystem={STUB_HEADERS}")
    program = build(ROOT / "reference" / "hw4" / f"{name}.cu", flags=flags, watch=True)
    values = np.random.default_rng(1).uniform(-3, 3, (2, 3, 128, 32)).astype("<f4")
    (tmp_path / "in").write_bytes(np.array([2, 128, 32], "<i4").tobytes() + values.tobytes())
    done = execute(program, "in", "out", folder=tmp_path, GRADER_EMULATOR_LEAKS="1")
    assert (done.exit_code, bool(done.kernels()), done.findings()) == (0, True, [])
