"""`grader estimate` from the source to the sentence, and that no predicted time becomes a grade."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.base.errors import MachineFault, UsageError
from grader.commands import estimating
from grader.commands.choice import Choice
from grader.commands.cli import app
from grader.commands.predicting import predictor
from grader.course.assignment import load_assignment
from grader.estimates import machine_code
from grader.estimates.estimate import Interval
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.profiling.advice import advice
from grader.programs.toolkit import Toolkit, find_toolkit
from grader.programs.trace import AccessEvent, Trace
from grader.report import estimate as report
from grader.store import compressed

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


@needs_nvdisasm
def test_a_judges_worker_predicts_the_usual_test_of_a_submission_and_gives_up_on_one_that_does_not_build(
    setup: Setup,
) -> None:
    predict = predictor(["an emulated GPU"])
    assert predict is not None
    grading = Grading(**vars(replace(setup, assignment=load_assignment("hw4"))))  # with its own limits
    found = predict(compressed([("tiled.cu", TILED.read_bytes())]))(grading)
    assert found is not None and (found.test, found.gpu) == ("t23", "H100")
    assert found.low_ms < MEASURED["hw4/tiled"]["t23"]["ms"] < found.high_ms
    assert found.words.startswith("Predicted, not measured: on an H100, t23 would take about")
    assert "Limit: shared-memory bank conflicts at tiled.cu:" in found.words
    assert predict(compressed([("hw4.cu", b"int main() {")]))(grading) is None


def test_without_nvdisasm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Toolkit, "tool", lambda self, name: None)
    with pytest.raises(MachineFault, match="pip install nvidia-cuda-nvdisasm"):
        machine_code.disassembler(find_toolkit())


def test_an_unknown_gpu_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="h100, h200, a100"):
        estimating.estimate_program(TILED, Choice("hw4", "t05"), "gtx480")


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
    showing = {"commands/estimating.py", "commands/predicting.py", "commands/submission_cli.py", "report/estimate.py"}
    assert {path for path in knowing if not path.startswith("estimates/")} == showing


def test_advice_is_in_the_order_of_predicted_gains_and_slight_ones_are_left_out() -> None:
    def access(line: int, excess: int, space: str = "shared") -> AccessEvent:
        return AccessEvent(0, "k", "hw4.cu", line, 1, space, "load", 4, 128, 100, 3200, 100 + excess, excess, 32)  # type: ignore[arg-type]

    trace = Trace(accesses=(access(10, 3100), access(20, 3000), access(30, 900, "global")))
    assert [text.partition(": ")[0] for text in advice(trace, "k", str)] == ["hw4.cu:10", "hw4.cu:20", "hw4.cu:30"]
    by_gain = advice(trace, "k", str, {("hw4.cu", 30): 0.4, ("hw4.cu", 20): 0.1})
    assert [text.partition(": ")[0] for text in by_gain] == ["hw4.cu:30", "hw4.cu:20"]
    assert by_gain[0].endswith("Predicted gain on an H100: 40% of the time.")


def test_a_class_is_planned_from_one_predicted_time_of_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ada.cu").write_text("int main() {}\n")
    (tmp_path / "bob.cu").write_text("int main() {}\n")

    def made(path: Path, tests: str | None, *rest: object, **fixes: bool) -> list[report.Estimate]:
        known = report.Estimate(str(tests), (100, 4096, 32), "H100", True, time=Interval(265.0, 250.0, 280.0))
        return [known if path.stem == "ada" else replace(known, time=None, why="it launches no kernel")]

    monkeypatch.setattr(estimating, "estimate_program", made)
    plan = estimating.class_plan([tmp_path], "hw4")[0].splitlines()
    assert plan[0].startswith("  ada: t23 265 ms predicted, about 75 s")
    assert plan[1] == "  bob: not predictable: it launches no kernel"
    assert plan[2] == "Predicted for 1 submissions, and 1 that cannot be predicted: 1 minutes of one H100."
