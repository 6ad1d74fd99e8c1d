"""`grader estimate` from the source to the sentence, and that no predicted time becomes a grade."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.base.errors import MachineFault, UsageError
from grader.commands import estimating
from grader.commands.cli import app
from grader.estimates import machine_code
from grader.programs.toolkit import Toolkit, find_toolkit
from grader.report import estimate as report

ROOT = Path(__file__).parents[2]
TILED = ROOT / "reference/hw4/tiled.cu"
MEASURED = json.loads((ROOT / "benchmarks/estimates/h100.json").read_text())["times"]

needs_nvdisasm = pytest.mark.skipif(find_toolkit().tool("nvdisasm") is None, reason="nvdisasm is not installed")


@needs_nvdisasm
def test_tiled_is_limited_by_bank_conflicts_and_takes_about_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "estimate.json"
    done = CliRunner().invoke(app, ["estimate", str(TILED), "--test", "t05", "--json", str(out)])
    assert done.exit_code == 0, done.output
    conflict = next(n for n, line in enumerate(TILED.read_text().splitlines(), 1) if "*score += q[" in line)
    assert f"bank conflicts at tiled.cu:{conflict}" in done.output
    assert "Predicted, not measured" in done.output
    (test,) = json.loads(out.read_text())["tests"]
    assert test["predicted_ms"] == pytest.approx(MEASURED["hw4/tiled"]["t05"]["ms"], rel=0.15)
    assert test["low_ms"] < test["predicted_ms"] < test["high_ms"]
    (kernel,) = test["kernels"]
    assert (kernel["launches"], kernel["fixes"][0]["what"]) == (1280, "shared-memory bank conflicts")
    assert kernel["without_ms"] < 0.7 * kernel["predicted_ms"]


def test_without_nvdisasm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Toolkit, "tool", lambda self, name: None)
    with pytest.raises(MachineFault, match="pip install nvidia-cuda-nvdisasm"):
        machine_code.disassembler(find_toolkit())


def test_an_unknown_gpu_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="h100, h200, a100"):
        estimating.estimate_program(TILED, "t05", "gtx480", "hw4")


def test_what_is_not_predictable_is_said_and_not_guessed() -> None:
    estimate = report.Estimate("t05", (80, 512, 32), "H100", True, why="it launches no kernel")
    assert report.render([estimate]) == "On an H100, t05 is not predictable: it launches no kernel."
    assert json.loads(report.as_json([estimate]))["tests"][0]["predicted_ms"] is None


def test_no_part_that_grades_stores_or_ranks_knows_predicted_times() -> None:
    knowing = {
        path.relative_to(ROOT / "grader").as_posix()
        for path in (ROOT / "grader").rglob("*.py")
        if re.search(r"^\s*from grader\.(estimates|report import estimate|report\.estimate)", path.read_text(), re.M)
    }
    showing = {"commands/estimating.py", "commands/submission_cli.py", "report/estimate.py"}
    assert {path for path in knowing if not path.startswith("estimates/")} == showing
