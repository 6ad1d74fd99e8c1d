"""The bundle in a folder laid out as Gradescope's /autograder: unpacked, then run_autograder for every hand-in. What
setup.sh would install is this environment; that it installs it is not tried here, since that takes minutes."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import run
from tests.support.gradescope import valid

REFERENCE = Path(__file__).resolve().parents[2] / "reference/hw4"


@pytest.fixture(scope="module")
def autograder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gradescope") / "autograder"
    bundle = root.parent / "autograder.zip"
    run("gradescope", "build", bundle, "--assignment", "hw4", "--tests", "s01", "--engine", "emulator")
    with zipfile.ZipFile(bundle) as file:
        file.extractall(root / "source")
    (root / "source/.venv").symlink_to(sys.prefix, target_is_directory=True)
    shutil.copy(root / "source/run_autograder", root / "run_autograder")
    return root


def handed_in(root: Path, **files: str) -> dict[str, Any]:
    """results.json of a submission of these files."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    shutil.rmtree(root / "results", ignore_errors=True)
    (root / "submission").mkdir()
    for name, text in files.items():
        (root / "submission" / name.replace("_cu", ".cu")).write_text(text)
    environment = {name: value for name, value in os.environ.items() if name not in ("GRADER_ROOT", "PYTHONPATH")}
    environment |= {"AUTOGRADER_ROOT": str(root)}
    done = subprocess.run(
        ["bash", root / "run_autograder"], cwd=root, env=environment, capture_output=True, text=True, timeout=200
    )
    assert (root / "results/results.json").is_file(), done.stderr
    return valid(json.loads((root / "results/results.json").read_text()))


def headers() -> dict[str, str]:
    return {path.name: path.read_text() for path in REFERENCE.glob("*.cuh")}


def test_a_right_solution_has_its_points(autograder: Path) -> None:
    results = handed_in(autograder, hw4_cu=(REFERENCE / "naive.cu").read_text(), **headers())
    assert results["score"] == 60
    assert [entry["status"] for entry in results["tests"] if entry["name"].startswith("s01")] == ["passed"]


def test_whatever_the_code_does_to_the_build_there_are_results(autograder: Path) -> None:
    results = handed_in(autograder, hw4_cu="template <int n> struct A { A<n + 1> a; }; A<0> a; int main() {}")
    assert "It does not compile" in results["output"]
    assert results["score"] <= 57
    assert "not your fault" not in results["output"]


def test_nothing_handed_in_has_results_too(autograder: Path) -> None:
    results = handed_in(autograder)
    assert results["score"] == 0
    assert "no .cu file" in results["output"]
