"""A diagnosis that fails changes no verdict: no cause is named, and the log has the failure, once."""

import logging
from pathlib import Path

import pytest

from grader.base import hints
from grader.grading import closer_look, judgement, one_test, pipeline, probing
from tests.support.command_line import graded
from tests.support.course import PROGRAMS


def test_where_every_diagnosis_fails_the_verdicts_stand_and_no_cause_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("planted")

    hints._reported.clear()
    monkeypatch.setattr(hints.log, "disabled", False)  # import-linter, in another test, disables all loggers
    for module, name in (
        (one_test, "diagnose"),
        (judgement, "find_slip"),
        (judgement, "contradictions"),
        (closer_look, "contradictions"),
        (pipeline, "wrong_launch"),
        (probing, "examine"),
    ):
        monkeypatch.setattr(module, name, broken)
    with caplog.at_level(logging.ERROR):
        record = graded(PROGRAMS / "wrong_scale.cu", tmp_path, "s01")
    assert {(test["verdict"], test["fault"]) for test in record["tests"]} == {("wrong_answer", "student")}
    for test in record["tests"]:
        assert test["cause"] == ""
        assert "values" in test["reason"]
    assert "mistake of the grader" in record["closer_look"]["problem"]
    said = [entry.getMessage() for entry in caplog.records if entry.name == hints.log.name]
    assert len(said) == 1
    assert "KeyError: 'planted'" in said[0]
    assert "test_hints.py" in said[0]
