"""What a course gives to its students works without the repository and holds nothing that they must not have."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.commands.handout import build_handout
from grader.course.assignment import load_assignment


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
