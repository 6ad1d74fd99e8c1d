"""What a course gives to its students works without the repository and holds nothing that they must not have."""

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.commands.handout import build_handout
from grader.course.assignment import load_assignment
from tests.support.course import ROOT


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("handout") / "out"
    build_handout(out, load_assignment("matmul"))
    return out


@pytest.fixture(scope="module")
def installed(handout: Path) -> Path:
    """The wheel, unpacked: what pip does with it."""
    (wheel,) = handout.glob("grader/*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(handout.parent / "installed")
    return handout.parent / "installed"


def test_it_holds_no_solution_no_secret_and_no_hidden_testcase(handout: Path, installed: Path) -> None:
    files = [path for folder in (handout, installed) for path in folder.rglob("*") if path.is_file()]
    assert {"matmul.cu", "canary.cu"} == {path.name for path in files if path.suffix == ".cu"}
    assert not [path for path in files if "reference" in path.parts or path.name == "secret" or "tests" in path.parts]
    assert {path.stem for path in files if path.suffix == ".out"} == {f"s{number:02}" for number in range(1, 9)}


def test_the_wheel_records_every_file_with_its_hash(installed: Path) -> None:
    (record,) = installed.glob("*.dist-info/RECORD")
    for name, said, _ in csv.reader(record.read_text().splitlines()):
        if name != record.relative_to(installed).as_posix():
            digest = base64.urlsafe_b64encode(hashlib.sha256((installed / name).read_bytes()).digest())
            assert said == f"sha256={digest.decode().rstrip('=')}", name


def test_the_wheel_says_what_it_needs_and_brings_the_command(installed: Path) -> None:
    (about,) = installed.glob("*.dist-info/METADATA")
    assert "Requires-Dist: numpy" in about.read_text()
    assert "grader = grader.__main__:main" in about.with_name("entry_points.txt").read_text()


def test_the_grader_in_it_finds_the_samples_there(handout: Path, installed: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GRADER_ROOT"}
    done = subprocess.run(
        [sys.executable, "-m", "grader", "testcases", "verify"],
        cwd=handout,
        env=environment | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count(": ok, ") == 8


def test_a_folder_with_something_in_it_is_left_alone(handout: Path) -> None:
    with pytest.raises(UsageError, match="exists already"):
        build_handout(handout, load_assignment("matmul"))


def _link_to_the_secret(template: Path) -> str:
    (template.parents[1] / "testcases/secret").write_text("secret")
    (template / "notes.txt").symlink_to("../../testcases/secret")
    return r"notes\.txt is a link"


def _copy_of_a_solution(template: Path) -> str:
    solution = min((template.parents[1] / "reference/matmul").glob("*.cu"))
    shutil.copy(solution, template / "old.cu")
    return rf"old\.cu is the same file as .*{solution.name}"


def _readme(template: Path) -> str:
    (template / "README.md").write_text("Hello")
    return r"README\.md: the handout has its own file of this name"


def _no_readme(template: Path) -> str:
    (template.parents[1] / "assignment/matmul/README.md").unlink()
    return r"README\.md cannot be read, and the handout needs it"


@pytest.mark.parametrize("spoil", [_link_to_the_secret, _copy_of_a_solution, _readme, _no_readme])
def test_a_course_that_would_give_away_or_lose_a_file_is_refused(
    spoil: Callable[[Path], str], handout: Path, course: Path
) -> None:
    for part in ("assignment/matmul", "student_template/matmul", "reference/matmul"):
        shutil.copytree(ROOT / part, course / part)
    shutil.copytree(handout / "testcases", course / "testcases", dirs_exist_ok=True)
    (course / "tools").mkdir()
    shutil.copy(ROOT / "tools/setup.sh", course / "tools")
    sentence = spoil(course / "student_template/matmul")
    with pytest.raises(UsageError, match=sentence):
        build_handout(course / "out", load_assignment("matmul"))
    assert not (course / "out").exists()


def test_a_handout_is_not_put_where_the_next_one_would_include_it() -> None:
    with pytest.raises(UsageError, match="goes into handouts"):
        build_handout(ROOT / "student_template/matmul/out", load_assignment("matmul"))


STUB = """#!/bin/sh
case "$1" in
    -V) echo Python 3.11.0 ;;
    -m) mkdir -p "$3/bin"
        for name in pip grader; do
            printf '#!/bin/sh\necho "$0 $*" >> "$LOG"\n' > "$3/bin/$name"
            chmod +x "$3/bin/$name"
        done ;;
esac
"""


def test_a_second_handout_of_a_course_finds_the_environment_of_the_first(handout: Path, tmp_path: Path) -> None:
    stub, log = tmp_path / "python", tmp_path / "log"
    stub.write_text(STUB)
    stub.chmod(0o755)
    environment = {**os.environ, "HOME": str(tmp_path), "LOG": str(log), "PYTHON": str(stub)}
    for name in ("GRADER_CACHE", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    said = []
    for number in (1, 2):
        folder = tmp_path / f"handout{number}"
        shutil.copytree(handout, folder)
        done = subprocess.run(
            ["sh", "grader/setup.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        said.append(done.stderr)
        assert done.stderr.endswith("setup: next: .venv/bin/grader check matmul.cu\n")
        assert (folder / ".venv/bin/grader").is_file()
    assert "is installed already" in said[1]
    assert log.read_text().count("grader doctor") == 1 and log.read_text().count(" install ") == 1
