"""Makes the zip to upload as a Gradescope autograder: the code and the course of this checkout, and two scripts.

Gradescope unpacks the zip to /autograder/source, runs setup.sh once when it builds the container, and runs
run_autograder for every submission (https://gradescope-autograders.readthedocs.io/en/latest/specs/).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from grader.base.errors import MachineFault, UsageError
from grader.base.identity import DISTRIBUTION, identity
from grader.base.packing import files_below, packed
from grader.base.paths import course_root, replacing, shown
from grader.course.assignment import Assignment
from grader.course.coherence import suite_of
from grader.operators import course_operator
from grader.programs import python_main

_TREES = ("grader", "emulator/src", "tools")
_TOP = ("pyproject.toml", "Makefile", "README.md", "LICENSE")


def build_bundle(target: Path, assignment: Assignment, *, tests: str, engine: str, secret: Path | None) -> list[str]:
    """Write the zip to `target`; the same checkout produces the same bytes. Return the names of the files in it.

    Hidden testcases need the course's secret, which becomes part of the zip. Raises UsageError if it is missing.
    """
    suite = suite_of(assignment)
    hidden = [case.name for case in suite.select(tests) if case.hidden]
    if hidden and secret is None:
        raise UsageError(
            f"--tests {tests} names hidden testcases ({hidden[0]} …), which only the course's secret determines: give "
            "its file with --secret (it becomes part of the zip), or choose --tests public."
        )
    in_python = any(name.endswith(python_main.SUFFIX) for name in assignment.submission.mains)
    words = {
        "@ASSIGNMENT@": assignment.name,
        "@TESTS@": ",".join(tests.split()),
        "@ENGINE@": engine,
        "@EXTRA@": "triton" if in_python else "",
    }
    # Without git in the container, setuptools-scm takes the version from here.
    about = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {identity().release}\n"
    content = {"PKG-INFO": about.encode()}
    for name in ("setup.sh", "run_autograder"):
        text = (files("grader.gradescope") / "templates" / name).read_text(encoding="utf-8")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        content[name] = text.encode()
    try:
        root = course_root()
        content |= {path.relative_to(root).as_posix(): path.read_bytes() for path in _course_files(root, assignment)}
        if secret is not None:
            content["testcases/secret"] = secret.read_bytes()
        with replacing(target) as file:
            file.write(packed(content))
    except OSError as error:
        read = error.filename is not None and Path(error.filename).parent != target.parent
        where = shown(Path(error.filename)) if read else shown(target)
        raise MachineFault(f"The zip could not be made: {where}: {error.strerror}.") from error
    return sorted(content)


def _course_files(root: Path, assignment: Assignment) -> Iterator[Path]:
    trees = [*(root / tree for tree in _TREES), root / "assignment" / assignment.name, *assignment.reference_folders]
    for tree in trees:
        yield from files_below(tree)
    yield assignment.testcases_file
    if (operator := course_operator(assignment.operator)) is not None:
        yield operator
    yield from (root / name for name in _TOP if (root / name).is_file())
