"""Shared by the grader's tests."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.paths import cache_folder, course_root
from grader.course.assignment import Assignment, load_assignment, load_assignment_file
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.testcase import load_suite
from grader.grading.setup import Setup
from grader.programs import control
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.engine.emulator import EmulatorEngine
from grader.sandbox import room
from grader.timing import sequential
from tests.redteam.arena import SECRET
from tests.support.batch_engine import PlainC
from tests.support.course import ROOT


@pytest.fixture(scope="session", autouse=True)
def _quick_baselines() -> None:
    """Whether baselines are right is what test_baseline.py tests."""
    sequential.LEAST_RUNS, sequential.AGREED, sequential.RUNS_IN_BUDGET = 3, 1.0, 80


@pytest.fixture(scope="session", autouse=True)
def _a_machine_that_compiles() -> None:
    """Each engine compiles the control program once, not after every failed build; test_control.py and test_build.py
    try it."""
    ask, works = control.compile_problem, set[tuple[str, bool]]()

    def once(engine: Engine, *, run: bool = False) -> str:
        key = (engine.identity(), run)
        if key in works:
            return ""
        if not (problem := ask(engine, run=run)) and isinstance(engine, EmulatorEngine | CudaEngine):
            works.add(key)
        return problem

    control.compile_problem = once


@pytest.fixture
def hurried_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the room end after one second of processor time."""
    asked = room._ask
    limited = lambda module, name, limits, given: asked(module, name, replace(limits, cpu_s=1), given)  # noqa: E731
    monkeypatch.setattr(room, "_ask", limited)


@pytest.fixture
def hw4() -> Assignment:
    """The live course's, for tests of that assignment itself; others take `rules`."""
    return load_assignment("hw4")


@pytest.fixture(scope="session")
def rules() -> Assignment:
    """An assignment that no instructor changes: tests/course/assignment/attention."""
    return load_assignment_file(ROOT / "tests/course/assignment/attention/assignment.yaml")


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of tests/course, for a test to change; commands and modules take it for the course."""
    root = tmp_path / "course"
    shutil.copytree(ROOT / "tests/course", root)
    monkeypatch.setenv("GRADER_ROOT", str(root))
    course_root.cache_clear()
    yield root
    monkeypatch.undo()
    course_root.cache_clear()


@pytest.fixture
def place_for_attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a cache of its own, by which an arena knows what survives; the emulator's compiled parts are the others'."""
    native = cache_folder() / "native"
    native.mkdir(exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/native").symlink_to(native)
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GRADER_SECRET", SECRET)
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file below the test's folder and gives its path."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


@pytest.fixture(scope="session")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """A class's setup on one small testcase, for hand-ins in plain C (tests/support/batch_engine.py)."""
    rules = load_assignment("hw4")
    rules = rules.model_copy(update={"limits": rules.limits.model_copy(update={"emulator_wall_s": 1.0})})
    suite = load_suite(rules.testcases_file)
    files = replace(TestcaseFiles.beside(suite), folder=tmp_path_factory.mktemp("testcases"))
    cases = suite.select("s01")
    generate(cases[0], files, suite.seed(cases[0]), lambda done, total: None)
    return Setup(rules, suite, files, cases, PlainC())
