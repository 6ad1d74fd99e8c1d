"""What a recorder's process left is read as a submission's files."""

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from cudaemu.process import Stopped
from grader import sandbox
from grader.plans.contract import Arguments
from grader.plans.package import Script
from grader.plans.plan import Blob
from grader.plans.refusals import Refused, refusal
from grader.programs.engine import plan_program
from grader.programs.engine.cuda import machine_code
from grader.programs.engine.interface import Recording
from grader.programs.engine.plan_program import ShapeToRecord, record
from grader.programs.engine.recorded import read_constants
from grader.programs.toolkit import find_toolkit
from grader.sandbox.budget import Budget

CONTENT = b"sixteen bytes..."
NAME = hashlib.sha256(CONTENT).hexdigest()
LACKING = Refused("secret", lacking=True)


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
    """What recorders leave that end well: for shapes that are shown, hidden ones, and without shapes."""

    def run(
        _file: Path, _work: Path, _recording: object, shapes: Sequence[ShapeToRecord], _budget: object
    ) -> tuple[Path, sandbox.Outcome]:
        kind = ("hidden" if shapes[0].hidden else "shown") if shapes else "none"
        assert all(shape.hidden == (kind == "hidden") for shape in shapes)  # one process never knows both
        return tmp_path / "left" / kind, sandbox.Outcome(0, None, "", 0.0, 0.0, 0, "", "")

    monkeypatch.setattr(plan_program, "_run_recorder", run)
    monkeypatch.setattr(plan_program, "triton_version", lambda: "3.6")
    for kind in ("hidden", "shown", "none"):
        (tmp_path / "left" / kind / "blobs").mkdir(parents=True)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "main.py").write_text("def solve(): ...\n")
    (tmp_path / "work").mkdir()
    return tmp_path / "left"


SHOWN, HIDDEN = (ShapeToRecord(b"%d" % hidden, Arguments(), {}, hidden) for hidden in (False, True))


def said(tmp_path: Path, *shapes: ShapeToRecord, why: Exception = LACKING) -> str:
    """What a student reads when the kernels cannot be loaded, for the reason `why`."""

    def loadable(*_: object) -> bytes:
        raise why

    recording = Recording("cuda:80", loadable)
    made = record("main.py", tmp_path / "source", tmp_path / "work", recording, shapes, limit_s=60)
    assert not made.lacking  # the sentence would begin in another way
    return made.log


def test_nothing_of_a_hidden_shape_is_told(left: Path, tmp_path: Path) -> None:
    name = hashlib.sha256(b"secret").hexdigest()
    (left / "hidden" / "blobs" / name).write_bytes(b"secret")
    plan = '{"constants": [], "buffers": [], "steps": [], "notes": ["secret"], "kernels": [KERNELS]}'
    kernel = f'{{"code": {{"ptx": "{name}"}}, "name": "k", "shared_bytes": 0}}'
    (left / "shown" / "0.json").write_text(plan.replace("KERNELS", "").replace("secret", ""))
    (left / "hidden" / "0.json").write_text(plan.replace("KERNELS", kernel))
    for why in (Refused("secret"), LACKING, Stopped("secret")):
        told = said(tmp_path, SHOWN, HIDDEN, why=why)
        assert "hidden testcases" in told and "secret" not in told


def test_the_error_of_hidden_shapes_alone_is_not_told(left: Path, tmp_path: Path) -> None:
    (left / "hidden" / "0.error").write_text("main.py:1: error: RuntimeError: secret")
    told = said(tmp_path, HIDDEN)
    assert "hidden testcases" in told and "secret" not in told


def test_an_error_of_the_file_is_told_by_a_process_that_knows_no_hidden_shape(left: Path, tmp_path: Path) -> None:
    (left / "hidden" / "error").write_text("main.py:1: error: RuntimeError: secret")
    assert "hidden testcases" in said(tmp_path, HIDDEN)
    (left / "none" / "error").write_text("main.py:1: error: NameError: tl")
    assert said(tmp_path, HIDDEN) == "main.py:1: error: NameError: tl"


def test_what_a_compiler_says_of_a_long_line_has_a_bound() -> None:
    said = refusal(f"ptxas k.ptx, line 2; error   : bad {'b' * 2000}", f"// {'a' * 2_000_000}\nadd // {' x' * 2000}")
    assert said.startswith("error: ptxas refuses an instruction of this line: bad bb") and len(said) <= 1000


def test_a_kernel_that_launches_kernels_is_refused(tmp_path: Path) -> None:
    """ptxas knows such functions without any library, and a GPU's driver does what cnpLaunchDeviceV2 says."""
    ptx = b""".version 8.0\n.target sm_80\n.address_size 64
.extern .func (.param .b32 r) NAME (.param .b64 a, .param .b64 b);
.visible .entry k() { { .param .b64 a; .param .b64 b; .param .b32 o;
st.param.b64 [a], 0; st.param.b64 [b], 0; call (o), NAME, (a, b); } ret; }\n"""
    (tmp_path / "work").mkdir()
    for name, refused in ((b"cnpLaunchDeviceV2", True), (b"cudaGraphLaunch", True), (b"vprintf", False)):
        with pytest.raises(Refused, match="launch kernels from kernels") if refused else contextlib.nullcontext():
            machine_code(
                "sm_90a", find_toolkit().nvcc, ptx.replace(b"NAME", name), (), tmp_path, tmp_path / "work",
                Budget(60, "it", 1 << 20),
            )  # fmt: skip
