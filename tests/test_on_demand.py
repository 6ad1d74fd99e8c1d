"""Modules are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.commands.on_demand import on_demand
from tests.conftest import ROOT


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that prints a line when it is executed."""
    (tmp_path / "grader_test_noted.py").write_text("print('executed')\nanswer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "grader_test_noted"
    sys.modules.pop("grader_test_noted", None)


def test_a_module_is_executed_once_and_when_it_is_first_used(noted: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = on_demand(noted)
    assert capsys.readouterr().out == ""
    assert module.answer == 42
    assert on_demand(noted) is module and module.answer == 42
    assert capsys.readouterr().out == "executed\n"


def test_an_ordinary_import_finds_the_same_module(noted: str) -> None:
    module = on_demand(noted)
    module.answer = 43
    import grader_test_noted

    assert grader_test_noted.answer == 43


def test_a_module_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match="grader_test_missing"):
        on_demand("grader_test_missing")


def test_help_waits_for_none_of_what_grading_takes() -> None:
    program = (
        "import sys\nfrom grader.commands.cli import main\n"
        "try: main(['grade', '--help'])\n"
        "finally: print('LOADED', sorted({'numpy', 'jinja2', 'pynvml', 'sqlite3'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--cluster" in done.stdout
    assert done.stdout.rstrip().endswith("LOADED []")


def test_python_m_grader_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "assignments"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "hw4.cu" in done.stdout
