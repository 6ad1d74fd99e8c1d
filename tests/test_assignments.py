"""Every assignment of the course, by the same tests: nothing here or in grader/ knows which there are.

By default one model solution of each is run on the emulator, on the smallest samples, and template and wrong solution
of one. With GRADER_TEST_EVERYTHING=1 all of them are: 44 programs, five minutes on two cores, nearly all compiling.
What a diagnosis knows is tested without programs in tests/operators.
"""

import ast
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.base.errors import UsageError
from grader.checking.check import check_output
from grader.commands import durations
from grader.commands.classroom import keep
from grader.commands.course_files import list_assignments, list_testcases
from grader.course.assignment import assignment_for, default_assignment, load_assignment
from grader.course.catalogue import TestcaseFiles, ensure, limits
from grader.course.coherence import suite_of
from grader.course.testcase import load_suite
from grader.operators.tolerance import ErrorRule, PlainErrors, limit_of
from tests.support.assignments import NAMES, NO_CAUSE, SAYS, WITH_WRONGS, assignment_of, models, shown, template, wrongs
from tests.support.command_line import graded, grader
from tests.support.course import ROOT
from tests.support.records import made_record, made_test
from tests.test_packages import MODULES, trees

EVERYTHING = os.environ.get("GRADER_TEST_EVERYTHING") == "1"


def first(paths: list[Path]) -> list[Path]:
    """The one that is tried by default: the smallest, which compiles in the least time."""
    return paths if EVERYTHING else sorted(paths, key=lambda path: path.stat().st_size)[:1]


TRIED = WITH_WRONGS if EVERYTHING else WITH_WRONGS[-1:]
MODELS = [path for name in (NAMES if EVERYTHING else WITH_WRONGS) for path in first(models(name))]
WRONGS = [path for name in TRIED for path in first(wrongs(name))]


def graded_here(path: Path, tmp_path: Path, tests: str = "public") -> dict[str, Any]:
    arch = "sm_90a" if "hopper" in path.stem else "sm_80"  # from s06 on, hw4's hopper.cu uses Hopper's instructions
    return graded(path, tmp_path, tests, "--assignment", assignment_of(path), "--engine", "emulator", "--arch", arch)


# ---- what an assignment consists of ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_its_files_are_where_the_layout_says(name: str) -> None:
    rules = load_assignment(name)
    assert (ROOT / "assignment" / name / "README.md").stat().st_size > 2000
    assert rules.testcases_file.is_file()
    assert (rules.reference_folder / rules.baseline.source).is_file()
    assert models(name)
    assert template(name).is_file() and (template(name).parent / "Makefile").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_its_rules_testcases_and_operator_fit_together(name: str) -> None:
    rules = load_assignment(name)
    suite = suite_of(rules)
    assert (suite.assignment, suite.operator.name) == (name, rules.operator)
    limited = {case.name for limit in rules.limits.wall_s for case in suite.select(limit.tests)}
    assert limited == set(suite.cases)
    assert all(case.group.startswith("public") for case in suite.select("public"))
    assert sum(case.flops for case in suite.select("public")) < 3e9
    for case in suite.cases.values():
        plain = {tensor.name: PlainErrors(1e-3, 1e-4, 1.0) for tensor in suite.operator.outputs(case.shape)}
        passing = suite.operator.tolerances(case.shape, rules.tolerance, plain)
        exact = rules.tolerance == ErrorRule(exact=True)
        for tensor in suite.operator.outputs(case.shape):
            some = limit_of(passing, tensor.name).allowed(np.ones(1)) > 0
            assert some != (exact or tensor.type.is_integer), tensor.name
    for part in rules.rubric:
        if part.kind in ("log_speedup", "occupancy"):
            assert set(suite.select(part.tests)) <= set(suite.graded)


@pytest.mark.parametrize("name", NAMES)
def test_its_sequential_baseline_is_right_and_refuses_bad_files_in_one_sentence(name: str, tmp_path: Path) -> None:
    rules = load_assignment(name)
    suite = load_suite(rules.testcases_file)
    files = TestcaseFiles(tmp_path)
    cases = suite.select("public")
    ensure(cases, suite, files)
    program = tmp_path / "seq"
    source = rules.reference_folder / rules.baseline.source
    command = ["gcc", *rules.baseline.flags, "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'reference'}"]
    subprocess.run([*command, "-o", program, source, "-lm"], check=True)
    for case in cases:
        output, times = tmp_path / "output", tmp_path / "times"
        subprocess.run([program, files.input(case), output, times, "0"], check=True)
        tolerance = limits(case, files, rules.tolerance)
        check = check_output(suite.operator, case.shape, files.expected(case), output, tolerance, files.input(case))
        assert check.passed, f"{case.name}: {check.reason}"
        seconds, done, total = times.read_text().split()
        assert float(seconds) > 0 and done == total
    header = suite.operator.encode_header(cases[0].shape)
    for content, says in ((b"\x01", "too short for its header"), (header, "shorter than its header says")):
        (tmp_path / "bad").write_bytes(content)
        refused = [program, tmp_path / "bad", tmp_path / "out"]
        ended = subprocess.run(refused, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        assert says in ended.stderr and ended.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()


# ---- nothing in grader/ knows their names ---------------------------------------------------------------------

ENGLISH = {"half", "backward", "matmul", "convolution", "histogram", "reduction", "scan", "sort", "transpose"}
"""Words of their own, such as a type of PTX, a function that Python submissions define, a method of lists."""
NAMED = re.compile("|".join(sorted(set(NAMES) - ENGLISH)))


def test_no_code_of_the_grader_holds_a_name() -> None:
    """No string, no identifier. Prose may: softmax is also what attention computes."""
    for module, tree in trees().items():
        for node in ast.walk(tree) if NAMED.search(MODULES[module].read_text(encoding="utf-8")) else ():
            words = {value for value in vars(node).values() if isinstance(value, str)}
            assert not words & (set(NAMES) - ENGLISH), f"{module}:{getattr(node, 'lineno', '?')}"


def test_no_file_of_the_grader_outside_the_operators_names_one_even_in_prose() -> None:
    words = [word for name in sorted(set(NAMES) - ENGLISH) for word in ("-e", name)]
    places = ["--", "grader/*.py", "emulator/src/*.py", ":!grader/operators"]
    found = subprocess.run(
        ["git", "grep", "--untracked", "-n", "-w", *words, *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout == ""
    assert found.returncode == 1, found.stderr  # 1: nothing found; else this was no search


# ---- which one is meant ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_submission_is_told_by_its_files_name_or_its_folders(name: str, tmp_path: Path) -> None:
    assert assignment_for(tmp_path / "alice" / load_assignment(name).submission.main).name == name
    assert assignment_for(tmp_path / name / "alice.cu").name == name
    assert assignment_for(template(name)).name == name
    own = [path for path in (*models(name), *wrongs(name)) if ROOT / "reference" / name in path.parents]
    assert {assignment_for(path).name for path in own[:: len(own) - 1 or 1]} == {name}


def test_a_command_that_names_none_means_the_default(tmp_path: Path) -> None:
    assert [name for name in NAMES if load_assignment(name).default] == [default_assignment().name]
    assert assignment_for(tmp_path / "alice.cu") == default_assignment()


def test_the_environment_overrules_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    other = next(name for name in NAMES if not load_assignment(name).default)
    monkeypatch.setenv("GRADER_ASSIGNMENT", other)
    assert default_assignment().name == other
    monkeypatch.setenv("GRADER_ASSIGNMENT", "hw99")
    with pytest.raises(UsageError, match="Unknown assignment 'hw99'"):
        default_assignment()


def test_assignments_lists_them_all_and_commands_take_each() -> None:
    said = grader("assignments")
    assert said.code == 0
    for name in NAMES:
        assert re.search(rf"^{name} .* {load_assignment(name).submission.main} ", said.out, re.MULTILINE)
        listed = list_testcases(name)
        for case in load_suite(load_assignment(name).testcases_file).cases:
            assert re.search(rf"^{case} ", listed, re.MULTILINE)


def test_make_grade_finds_a_model_solution_of_every_assignment() -> None:
    for name in NAMES:
        done = subprocess.run(
            ["make", "-n", "-o", ".venv/.ready", "grade", f"ASSIGNMENT={name}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = re.search(r'grader grade "(\S+)" --assignment (\w+)', done.stdout)
        assert found is not None and found[2] == name
        assert ROOT / found[1] in models(name)


# ---- on the emulator ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODELS, ids=shown)
def test_a_model_solution_passes_public_samples_unflagged(path: Path, tmp_path: Path) -> None:
    public = sorted(suite_of(load_assignment(assignment_of(path))).select("public"), key=lambda case: case.flops)
    record = graded_here(path, tmp_path, ",".join(case.name for case in public[: None if EVERYTHING else 4]))
    assert record["assignment"] == assignment_of(path)
    assert {test["verdict"] for test in record["tests"]} == {"passed"}, [test["reason"] for test in record["tests"]]
    assert all(test["warnings"] == test["flags"] == [] for test in record["tests"])


@pytest.mark.parametrize("name", TRIED)
def test_the_template_compiles_and_fails_every_test_politely(name: str, tmp_path: Path) -> None:
    record = graded_here(template(name), tmp_path)
    assert record["build"]["ok"] is True
    assert {test["verdict"] for test in record["tests"]} == {"wrong_answer"}
    assert all("exactly 0" in test["reason"] or "is empty" in test["reason"] for test in record["tests"])
    assert record["scores"]["correctness"] == 0


@pytest.mark.parametrize("path", [path for name in WITH_WRONGS for path in wrongs(name)], ids=shown)
def test_a_wrong_solution_says_what_the_grader_must_find(path: Path) -> None:
    head = path.read_text(encoding="utf-8").splitlines()
    said = SAYS.fullmatch(head[1])
    assert head[0].startswith("// ") and said
    if said[1] == NO_CAUSE:
        return
    for words in said[1].split(" | "):
        part = len(words) * 3 // 5  # the rest may be a name or a number that the grader puts in
        parts = [words[at : at + part] for at in range(len(words) - part + 1)]
        assert any(each in texts_of_the_grader() for each in parts), f"the grader says nothing like {words!r}"


@cache
def texts_of_the_grader() -> str:
    """All its constant strings, such as the parts of its messages."""
    operators = (ast.parse(path.read_bytes()) for path in (ROOT / "assignment").glob("*/operator.py"))
    nodes = [
        node for tree in (*trees().values(), *operators) for node in ast.walk(tree) if isinstance(node, ast.Constant)
    ]
    return "\0".join(node.value for node in nodes if isinstance(node.value, str))


@pytest.mark.parametrize("path", WRONGS, ids=shown)
def test_a_wrong_solution_is_refused_with_its_cause(path: Path, tmp_path: Path) -> None:
    said = SAYS.search(path.read_text(encoding="utf-8"))
    assert said is not None
    failed = [test for test in graded_here(path, tmp_path)["tests"] if test["verdict"] != "passed"]
    assert {test["verdict"] for test in failed} == {"wrong_answer"}
    if said[1] == NO_CAUSE:
        explained = [test for test in failed if not test["cause"] and re.match(r"[\d,]+ of ", test["reason"])]
    else:
        explained = [test for test in failed if any(words in test["reason"] for words in said[1].split(" | "))]
    assert failed and 2 * len(explained) >= len(failed), [test["reason"] for test in failed]


# ---- side by side in one store ----------------------------------------------------------------------------------


def test_one_store_holds_several_and_a_leaderboard_ranks_one_of_them(tmp_path: Path) -> None:
    store = tmp_path / "course.sqlite"
    for name, speedups in ((WITH_WRONGS[0], {"alice": 40.0, "bob": 20.0}), (WITH_WRONGS[1], {"carol": 30.0})):
        records = [made_record(who, speedups=[speedup], assignment=name) for who, speedup in speedups.items()]
        keep(records, store)
    for name, there, absent in (
        (WITH_WRONGS[0], ["alice", "bob"], ["carol"]),
        (WITH_WRONGS[1], ["carol"], ["alice", "bob"]),
    ):
        words = ("leaderboard", "--store", store, "--assignment", name, "--names", "id", "--format", "csv")
        said = grader(*words)
        assert said.code == 0, said.err
        assert all(student in said.out for student in there)
        assert not any(student in said.out for student in absent)


def test_the_list_says_how_long_a_grading_took_where_all_graded_tests_passed() -> None:
    rules = load_assignment("saxpy")
    graded = suite_of(rules).graded
    few, all_of_them = ([made_test(case.name) for case in cases] for cases in (graded[1:], graded))
    for tests, sha256 in ((few, rules.measured_sha256), (all_of_them, "0" * 64), (all_of_them, rules.measured_sha256)):
        assert durations.last(rules) == durations.NOT_MEASURED
        record = made_record(tests=tests, assignment="saxpy", measured_sha256=sha256, timings={"total": 9.0})
        durations.keep(record, graded)
    (line,) = (line for line in list_assignments().splitlines() if line.startswith("saxpy"))
    assert line.endswith("9 s on NVIDIA H200")
