"""The record: its keys are a promise, and it is written whole or not at all."""

import json
from pathlib import Path

import pytest

from grader.base.errors import MachineFault, UsageError
from grader.base.verdict import Fault, Verdict
from grader.records.record import TestRecord, read_record, write_records
from tests.support.records import practice_record


def test_the_stable_keys_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_records([practice_record()], path)
    record = json.loads(path.read_text())
    assert record["schema"] == "grader-record-2"
    assert set(record["grader"]) == {"version", "commit", "package_sha256"}
    assert set(record["submission"]) >= {"id", "path", "sha256"}
    assert set(record["engine"]) >= {"name", "device"}
    assert set(record["build"]) >= {"ok", "log", "seconds"}
    keys = {"name", "shape", "verdict", "fault", "reason", "max_error", "wall_s", "gpu_ms", "speedup"}
    assert set(record["tests"][0]) >= keys
    assert record["tests"][0]["shape"] == [2, 128, 32]
    assert record["tests"][0]["gpu_ms"] is None
    assert record["tests"][1]["verdict"] == "time_limit"
    assert record["tests"][1]["fault"] == "student"
    assert record["scores"] == {
        "correctness": 30.0, "speedup": None, "occupancy": None, "report": None, "total": None, "max": 100,
    }  # fmt: skip


def test_a_record_of_the_old_schema_still_loads(tmp_path: Path) -> None:
    old = practice_record().model_dump(mode="json", by_alias=True) | {"schema": "grader-record-1", "grader": "0.1.0"}
    del old["measured_sha256"], old["rescored"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    read = read_record(tmp_path / "old.json")
    assert (str(read.grader), read.scores) == ("0.1.0", practice_record().scores)


def test_one_record_is_an_object_and_several_are_a_list(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    write_records([practice_record(), practice_record()], path)
    assert [record["submission"]["id"] for record in json.loads(path.read_text())] == ["alice", "alice"]


def test_a_record_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_records([practice_record()], path)
    assert read_record(path) == practice_record()


def test_an_older_result_stays_when_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    missing = tmp_path / "no such folder" / "record.json"
    with pytest.raises(MachineFault, match=r"could not be written to .*record\.json"):
        write_records([practice_record()], missing)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "not json", "{}", '{"schema": "something else"}'])
def test_a_file_that_is_no_record_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"other\.json is not a record of this grader"):
        read_record(path)


def test_only_faults_of_grader_or_machine_make_a_grading_fail() -> None:
    assert not practice_record().infrastructure_failed
    broken = TestRecord(
        name="t01", shape=(1,), verdict=Verdict.GRADER_ERROR, fault=Fault.MACHINE, reason="The GPU is gone."
    )
    assert practice_record(tests=(broken,)).infrastructure_failed
