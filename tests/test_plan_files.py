"""What a recorder's process left is read as a submission's files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from grader import sandbox
from grader.plans.contract import Arguments
from grader.plans.package import Script
from grader.plans.plan import Blob
from grader.plans.refusals import Refused
from grader.programs.engine import plan_program
from grader.programs.engine.interface import Recording
from grader.programs.engine.plan_program import ShapeToRecord, record
from grader.programs.engine.recorded import read_constants
from grader.sandbox.budget import Budget

CONTENT = b"sixteen bytes..."
NAME = hashlib.sha256(CONTENT).hexdigest()


def test_each_plan_must_say_the_size_of_a_constant(tmp_path: Path) -> None:
    """A plan that said 0 bytes would be checked against 0 bytes, and write them all."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / NAME).write_bytes(CONTENT)
    right, wrong = (Script(constants=(Blob(name=NAME, bytes=size),)) for size in (len(CONTENT), 0))
    found = dict[str, bytes]()
    read_constants(tmp_path, [right, right], Budget(60, "it", 1 << 20), found)
    assert found == {NAME: CONTENT}
    for scripts in ([right, wrong], [wrong, right]):
        with pytest.raises(Refused, match="blob of its plan"):
            read_constants(tmp_path, scripts, Budget(60, "it", 1 << 20), {})


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a recorder that leaves the plans which a test writes here, and ends well."""

    def run(_file: Path, out: Path, *_: object) -> sandbox.Outcome:
        out.rmdir()
        (tmp_path / "left").rename(out)
        return sandbox.Outcome(0, None, "", 0.0, 0.0, 0, "", "")

    monkeypatch.setattr(plan_program, "_run_recorder", run)
    monkeypatch.setattr(plan_program, "triton_version", lambda: "3.6")
    (tmp_path / "left" / "blobs").mkdir(parents=True)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "main.py").write_text("def solve(): ...\n")
    (tmp_path / "work").mkdir()
    return tmp_path / "left"


def shape(header: bytes, *, hidden: bool) -> ShapeToRecord:
    return ShapeToRecord(header, Arguments(), {}, hidden)


def said(tmp_path: Path, *shapes: ShapeToRecord) -> str:
    def loadable(binary: bytes, *_: object) -> bytes:
        raise Refused(f"{binary.decode()} cannot be loaded")

    recording = Recording("cuda:80", loadable)
    return record("main.py", tmp_path / "source", tmp_path / "work", recording, shapes, limit_s=60).log


def test_nothing_of_a_hidden_shape_is_told(left: Path, tmp_path: Path) -> None:
    kernel = hashlib.sha256(b"secret").hexdigest()
    (left / "blobs" / kernel).write_bytes(b"secret")
    nothing = dict[str, list[object]](kernels=[], notes=[], constants=[], buffers=[], steps=[])
    hidden = nothing | {
        "kernels": [{"code": {"ptx": kernel}, "name": "k", "shared_bytes": 0}],
        "notes": ["secret"],
    }
    (left / "0.json").write_text(json.dumps(nothing))
    (left / "1.json").write_text(json.dumps(hidden))
    told = said(tmp_path, shape(b"a", hidden=False), shape(b"b", hidden=True))
    assert "hidden testcases" in told and "secret" not in told


def test_the_error_of_hidden_shapes_alone_is_not_told(left: Path, tmp_path: Path) -> None:
    (left / "0.error").write_text("main.py:1: error: RuntimeError: secret")
    told = said(tmp_path, shape(b"a", hidden=True))
    assert "hidden testcases" in told and "secret" not in told
