"""Findings as SARIF, and in another language."""

import json

import pytest

from grader.findings import Finding, Place
from grader.report import sarif
from tests.support.records import made_record, made_test

RACE = Finding(
    kind="race",
    file="hw4.cu",
    line=7,
    other=Place(file="hw4.cu", line=5),
    array="tile",
    words={"does": "read", "other_does": "write", "between": "warps", "how": "barrier"},
)


def results(*findings: Finding) -> list[dict[str, object]]:
    tests = [made_test(name).model_copy(update={"findings": findings}) for name in ("s01", "s02")]
    document = json.loads(sarif.render([made_record(tests=tests)]))
    assert document["version"] == "2.1.0"
    found: list[dict[str, object]] = document["runs"][0]["results"]
    return found


def test_a_finding_of_several_tests_is_one_result_at_its_lines() -> None:
    (result,) = results(RACE)
    assert (result["ruleId"], result["level"]) == ("race", "error")
    assert result["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "hw4.cu"}, "region": {"startLine": 7}}}
    ]
    assert result["relatedLocations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "hw4.cu"}, "region": {"startLine": 5}}}
    ]
    assert isinstance(result["properties"], dict) and result["properties"]["tests"] == ["s01", "s02"]


def test_what_is_not_claimed_or_has_no_place_is_left_out() -> None:
    assert results(RACE.model_copy(update={"certainty": 0.2}), Finding(kind="no_launch")) == []


def test_the_message_is_in_the_chosen_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_LANG", "zh-TW")
    assert results(RACE)[0]["message"] == {
        "text": "競爭（race）：hw4.cu:7 讀取 `tile`，同時另一個 warp 在 hw4.cu:5 寫入它；請在兩者之間放 "
        "__syncthreads()。在 GPU 上可能碰巧會對。"
    }
