"""Python submissions: how the build records their plans, and how a package of plans is replayed.

The package takes the place of a compiled program. In the build, `solve` runs once for each shape, in the sandbox, where
no testcase can be read; what it leaves is checked, its kernels are compiled for the engine, and all goes into one file.
"""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.util
import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaemu.process import Stopped
from grader import sandbox
from grader.base.errors import MachineFault
from grader.base.identity import PACKAGES
from grader.base.verdict import Fault
from grader.plans.contract import Arguments
from grader.plans.package import Script, failing, package
from grader.plans.plan import Code
from grader.plans.refusals import Refused
from grader.programs.engine.interface import Compiled, Engine, Launch, Recording
from grader.programs.engine.recorded import (
    MAX_KEPT_BYTES,
    compile_kernels,
    message_of,
    read_constants,
    read_script,
)
from grader.sandbox import memory_share
from grader.sandbox.budget import Budget, drawing
from grader.sandbox.scratch import scratch_folder

PACKAGE = "program.plans"
INSTALL = f"{sys.executable} -m pip install 'triton>=3.6,<3.10'"
NEEDS_TRITON = f"Python submissions need Triton, which is not installed here: run `{INSTALL}`."
_START = """import sys; from importlib.util import *
for name, file in {!r}:
    spec = spec_from_file_location(name, file)
    sys.modules[name] = made = module_from_spec(spec); spec.loader.exec_module(made)
from grader.{} import main; main()"""
"""Starts the recorder, or a local run. The sandbox passes no PYTHONPATH on, which may have led to the grader itself,
and under Landlock the folders with the grader's packages cannot be listed, so no search finds it."""
_CONTROL = """\
import numpy
import torch
import triton
import triton.language as tl


@triton.jit
def one(values):
    tl.store(values, 1.0)


def solve():
    one[(1,)](torch.empty(1, device="cuda"))
"""
_HIDDEN = "something fails or exceeds a limit for shapes of hidden testcases only, which must not be shown"
_MEMORY_BYTES = 8 << 30


def triton_tool(name: str) -> Path | None:
    """A compiler that Triton brings along; None if it does not."""
    spec = importlib.util.find_spec("triton")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    tool = folder / "backends" / "nvidia" / "bin" / name if folder is not None else None
    return tool if tool is not None and tool.is_file() else None


def is_package(program: Path) -> bool:
    return program.name == PACKAGE


def identity() -> str:
    """The versions that a package depends on, in addition to the submission and the engine."""
    return f"plans 3 python {sys.version} triton {triton_version()}"


def triton_version() -> str:
    """The version of Triton; '' if it is not installed."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True)
class ShapeToRecord:
    """The header of one shape, the arguments for it, and values as they may be in each input buffer, by its number.
    `hidden`: what host code prints or raises for it stays hidden."""

    header: bytes
    arguments: Arguments
    samples: Mapping[int, bytes]
    hidden: bool


def record(
    main: str, folder: Path, work: Path, recording: Recording, shapes: Sequence[ShapeToRecord], *, limit_s: float
) -> Compiled:
    """Record the submission in `folder`, whose file is `main`, for some shapes. `work` is an empty folder for files of
    the grader's and the compilers'."""
    if not triton_version():
        raise MachineFault(NEEDS_TRITON)
    with drawing(Budget(limit_s, "recording it and compiling its kernels", MAX_KEPT_BYTES)) as budget:
        return _record(main, folder, work, recording, shapes, budget)


def _record(
    main: str, folder: Path, work: Path, recording: Recording, shapes: Sequence[ShapeToRecord], budget: Budget
) -> Compiled:
    """Hidden shapes are recorded in a process of their own, the last one, since what it leaves can tell all that it
    knows: other processes can see names and sizes of files under Landlock."""
    constants, kernels = dict[str, bytes](), dict[Code, bytes]()
    chosen, told, notes, worked = dict[bytes, Script](), "", list[str](), not shapes

    def loadable(ptx: bytes, ptxas: Sequence[str]) -> bytes:
        return recording.loadable(ptx, ptxas, folder, work, budget)

    for hidden in (False, True):
        if not (group := [shape for shape in shapes if shape.hidden == hidden]):
            continue
        try:
            if hidden and not chosen:  # an error of the file itself may be told by a process before that with shapes
                out, _ = _run_recorder(folder / main, work / "file", recording, (), budget)
                if failed := message_of(out, "error"):
                    return Compiled(Fault.STUDENT, failed)
            out, outcome = _run_recorder(folder / main, work / f"hidden-{hidden}", recording, group, budget)
            if failed := message_of(out, "error"):
                raise Refused(failed)
            stopped, scripts, failures = _stopped(outcome, main), list[Script](), list[str]()
            for number, shape in enumerate(group):
                script, failure = read_script(out, number, shape.arguments, budget)
                scripts.append(script)
                problem = _unfit(main, script.problem) if script.problem else failure
                failures.append(stopped if problem is None else problem)
            read_constants(out, scripts, budget, constants)
            compile_kernels(out, scripts, budget, loadable, kernels)
        except (Refused, Stopped) as why:
            if hidden:  # whatever it is, it has one sentence
                worked = False
                break
            if isinstance(why, Refused):
                return Compiled(Fault.STUDENT, str(why), why.lacking)
            return Compiled(Fault.STUDENT, _unfit(main, str(why)))
        for shape, script, failure in zip(group, scripts, failures, strict=True):
            chosen[shape.header] = failing(failure.partition("\n")[0]) if failure else script
        worked = worked or not all(failures)
        if not hidden:
            told = next(filter(None, failures), "")
            notes = [" ".join(note.split()) for script in scripts for note in script.notes]
    if not worked:
        return Compiled(Fault.STUDENT, told or _unfit(main, _HIDDEN))
    log = "\n".join((told, *dict.fromkeys(notes))).strip()
    return Compiled(None, log, package=package(chosen, len(next(iter(chosen), b"")), constants, kernels))


def _unfit(main: str, problem: str) -> str:
    return f"{main}:1: error: it cannot be replayed: {problem}"


def _run_recorder(
    file: Path, work: Path, recording: Recording, shapes: Sequence[ShapeToRecord], budget: Budget
) -> tuple[Path, sandbox.Outcome]:
    """Record in the new folder `work`. Returns the folder that the process may write."""
    out, samples, replayer = work / "recorded", work / "samples", recording.replayer
    out.mkdir(parents=True)
    samples.mkdir()
    for number, shape in enumerate(shapes):
        for buffer, values in shape.samples.items():
            (samples / f"{number}-{buffer}").write_bytes(values)
    request = work / "request.json"
    asked = {
        "file": str(file), "out": str(out), "target": recording.target, "replay": replayer.command,
        "samples": str(samples), "shapes": [shape.arguments.model_dump() for shape in shapes],
    }  # fmt: skip
    request.write_text(json.dumps(asked))
    with scratch_folder("record", work) as place:
        (place / "cache").mkdir()
        job = sandbox.Job(
            command=(*_python("plans.recording"), str(request)),
            folder=place,
            environment={"TRITON_CACHE_DIR": str(place / "cache"), **replayer.environment},
            readable=(file.parent, request, samples, *python_paths(), *replayer.readable),
            writable=(out,),
            devices=replayer.devices,
        )
        cpu_s, wall_s = budget.left_s()
        memory_bytes = memory_share.of_a_program(_MEMORY_BYTES)
        outcome = sandbox.run(job, sandbox.Limits(wall_s, cpu_s, memory_bytes, folder_bytes=2 << 30))
        budget.spend(outcome.cpu_s)
        return out, outcome


def _stopped(outcome: sandbox.Outcome, main: str) -> str:
    """Why the recorder left nothing for a shape."""
    if outcome.timed_out:
        return (
            f"{main}:1: error: host code was stopped after {outcome.wall_s:.0f} s, {outcome.cpu_s:.0f} s of them "
            "computing, while it was recorded: it loops, waits, or compiles too many kernels"
        )
    if outcome.broke:
        return f"{main}:1: error: host code was stopped at its {outcome.broke} limit"
    said = outcome.stderr.strip().rpartition("\n")[2][:300]
    return f"{main}:1: error: the host code's process ended while it was recorded: {said or outcome.ending}"


# ---- places -------------------------------------------------------------------------------------------------------


def _python(module: str) -> tuple[str, ...]:
    packages = [(package.name, str(package / "__init__.py")) for package in PACKAGES]
    return sys.executable, "-sPBc", _START.format(packages, module)


def local_command(engine: Engine, file: Path, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command for `grader run`."""
    made = base64.b64encode(pickle.dumps(engine)).decode()
    return *_python("programs.engine.local_run"), made, str(file), *arguments


def python_paths() -> tuple[Path, ...]:
    """The files of this Python, its packages and the grader's own two."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    return tuple(folder for folder in (*folders, *PACKAGES) if not folder.is_relative_to("/usr"))


def control_problem(recording: Recording, limit_s: float = 60) -> str:
    """The reason why not even a program with one kernel can be recorded on this machine; '' if it can."""
    if not triton_version():
        return NEEDS_TRITON
    with scratch_folder("record") as folder:
        for name in ("source", "work"):
            (folder / name).mkdir()
        (folder / "source" / "main.py").write_text(_CONTROL)
        shape = ShapeToRecord(b"", Arguments(), {}, hidden=False)
        made = record("main.py", folder / "source", folder / "work", recording, (shape,), limit_s=limit_s)
    if made.ok:
        return ""
    said = made.log.strip().splitlines()[-1] if made.log.strip() else "the process left no message"
    return (
        f"Python submissions cannot be recorded: {said}. They can import only what is installed for {sys.executable}, "
        "nothing from PYTHONPATH or `pip install --user`"
    )


def started(program: Path, arguments: Sequence[str], engine: Engine) -> Launch:
    """How to start a program, or to replay a package on INPUT and OUTPUT. The engine adds its environment."""
    command = engine.replay() if is_package(program) else ()
    files = (Path(word.rpartition(":")[2]) for word in command)
    return Launch((*command, str(program), *arguments), readable=tuple(file for file in files if file.is_file()))
