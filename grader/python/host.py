"""Starts a packed Python program: `main` with the arguments program.pyz ARGUMENT...

The program's files and Triton's cache are unpacked into a temporary folder, so that no run finds kernels that an
earlier run compiled. With the engine `compile`, the arguments are pairs of input and output, and the program runs once
for each pair, in one process. Triton's cache is then the folder GRADER_PYTHON_CACHE, which is kept.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.util
import json
import os
import random
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import tokenize
import traceback
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import triton
from triton.backends import Backend, backends
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler.errors import CompilationError
from triton.runtime import cache, driver

from grader.python import gpu, program_process, provenance
from grader.python.backend import EmulatorBackend, make_cubin
from grader.python.channel import Channel
from grader.python.device import EmulatedDevice, GpuDevice, use
from grader.python.driver import CompilingDriver, EmulatorDriver, GpuDriver
from grader.python.guard import watch_files
from grader.python.layout import (
    CACHE,
    CACHE_VARIABLE,
    ENGINE_VARIABLE,
    KERNELS,
    MAIN,
    RECORD_VARIABLE,
    SEED_VARIABLE,
    SOURCE,
    TRACE_VARIABLE,
    code_hash,
)
from grader.python.remote import RemoteDevice
from grader.python.service import Service

_STARTED: dict[str, object] = {"kind": "program_start"}
"""Without this event, no fault is the program's."""
_NOTHING_FOLLOWED: dict[str, object] = {
    "kind": "provenance",
    **{kind: {"count": 0, "line": 0} for kind in ("uploads", "arguments", "written")},
}
_MODULES = Path(__file__).parent / "modules"
"""The folder of modules that a submission can import in addition to installed packages."""


def start(package: str, arguments: Sequence[str]) -> int:
    """Run the program in `package`; return its exit code."""
    owner = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix="python-"))
    try:
        with zipfile.ZipFile(package) as packed:
            packed.extractall(folder)
        _relocate(folder / CACHE)
        main = folder / SOURCE / (folder / MAIN).read_text()
        kept = os.environ.get(CACHE_VARIABLE)
        os.environ["TRITON_CACHE_DIR"] = kept or str(folder / CACHE)
        os.environ["GRADER_PYTHON_KERNELS"] = str(folder / KERNELS)
        os.environ["GRADER_CACHE"] = str(folder / "objects")
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns without it
        sys.path[:0] = [str(main.parent), str(_MODULES)]
        sys.argv[0] = str(main)
        return _start(main, folder, arguments)
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def _start(main: Path, folder: Path, arguments: Sequence[str]) -> int:
    engine = os.environ.get(ENGINE_VARIABLE, "cuda")
    kept = folder, Path(os.environ["TRITON_CACHE_DIR"])
    compiling = engine.startswith("compile")
    with_torch = _imports_torch(main) and importlib.util.find_spec("torch") is not None
    if not with_torch:
        sys.meta_path.insert(0, _WithoutTorch())
    _take_over(engine)
    traced = TRACE_VARIABLE in os.environ  # else NVIDIA's tools run, in this process
    if traced and not compiling and not with_torch and len(arguments) == 2:
        return _followed(main, kept, arguments, engine)
    use(GpuDevice() if engine == "cuda" else EmulatedDevice())
    watch_files(kept, {})
    if not compiling:
        _add_to_trace(_STARTED)
        code = _run(main, arguments)
        if "torch" in sys.modules:  # without the event, the run is doubted
            _add_to_trace(_NOTHING_FOLLOWED)
        return code
    codes = []
    for pair in zip(arguments[::2], arguments[1::2], strict=True):
        codes.append(_run(main, pair))
        with contextlib.suppress(OSError):
            Path(pair[1]).unlink()  # all outputs together could fill the disk
    return max(codes, default=0)


_ADVICE = (
    (
        "'function' object is not subscriptable",
        "a function that is launched as kernel[grid](...) needs @triton.jit above its def",
    ),
    ("ndarray", "kernels take arrays in device memory: copy values there with from_numpy, or make an array with empty"),
)
"""Parts of Python's and Triton's error messages, each with advice on the program."""


class _WithoutTorch(importlib.abc.MetaPathFinder):
    """Hides PyTorch from Triton, whose import of it would take seconds in each run."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "torch":
            raise ModuleNotFoundError("the program does not import torch", name=name)


def _imports_torch(main: Path) -> bool:
    tree = ast.parse(main.read_bytes())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    return any(name.partition(".")[0] == "torch" for name in names)


def _relocate(cache: Path) -> None:
    """Update the paths in Triton's cache, which lists its files by full paths from the time when the package was
    made."""
    for group in cache.glob("*/__grp__*.json"):
        names = json.loads(group.read_text())["child_paths"]
        group.write_text(json.dumps({"child_paths": {name: str(group.with_name(name)) for name in names}}))


def _take_over(engine: str) -> None:
    """Replace Triton's driver for NVIDIA GPUs, and on the emulator its compiler too, by ours."""
    CUDABackend.make_cubin = make_cubin
    cache.triton_key = lambda: triton.__version__  # Triton would hash all its files, longer than most runs
    kind, _, architecture = engine.partition(":")
    if kind != "cuda" and not architecture:
        backends["nvidia"] = Backend(EmulatorBackend, EmulatorDriver)
    if kind == "compile":
        driver.set_active(CompilingDriver(int(architecture or 0)))
    else:
        driver.set_active(GpuDriver() if kind == "cuda" else EmulatorDriver())


def _followed(main: Path, kept: Sequence[Path], arguments: Sequence[str], engine: str) -> int:
    """Run the program in a child, which has no device, and add to the trace where its output's values come from."""
    input_file, output_file = (Path(os.path.realpath(name)) for name in arguments)
    record = os.environ.pop(RECORD_VARIABLE, "")
    seed = os.environ.pop(SEED_VARIABLE, None)
    dice = random.Random(seed)
    provenance.secret = dice.getrandbits(63)
    on_gpu = engine == "cuda"

    def identity(binary: bytes) -> str:
        return (gpu.code_hash if on_gpu else code_hash)(binary, os.fsencode(main.parent))

    binaries = kept[0].glob(f"{CACHE}/*/*.{'cubin' if on_gpu else 'ptx'}")
    known = {identity(binary.read_bytes()) for binary in binaries}
    ours, theirs = socket.socketpair()
    program_process.adopt()
    _add_to_trace(_STARTED)
    child = os.fork()
    if not child:
        program_process.leave(theirs.fileno())
        for name in (TRACE_VARIABLE, "CUDA_INJECTION64_PATH"):
            os.environ.pop(name, None)
        remote = RemoteDevice(Channel(theirs))
        use(remote)
        if seed is not None:
            _seed(dice)
        _clear_new_arrays()
        watch_files(kept, {str(output_file): remote.output_opened})
        return _run(main, arguments)
    theirs.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends then, or does not
    descriptor = int(record) if record else os.open(os.devnull, os.O_RDWR)
    follower = provenance.Follower(input_file, output_file, lambda: service.line, descriptor)
    service = Service(GpuDevice() if on_gpu else EmulatedDevice(), follower, identity, known)
    service.serve(Channel(ours), os.pidfd_open(child))
    ours.close()
    code = program_process.wait(child)
    with contextlib.suppress(OSError):  # without the event, the run is doubted
        _add_to_trace(follower.report())
    if code < 0:
        with contextlib.suppress(OSError):  # of SIGKILL, which needs no default
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _seed(dice: random.Random) -> None:
    """Let the program draw the same random numbers in every run with these dice."""
    randbits = dice.getrandbits
    random.seed(dice.getrandbits(64))
    np.random.seed(dice.getrandbits(32))
    np.random.bit_generator.randbits = lambda bits: randbits(bits)  # type: ignore[attr-defined]
    original = random.Random.seed

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        original(self, randbits(64) if a is None else a, version)

    random.Random.seed = seeded  # type: ignore[method-assign]


def _clear_new_arrays() -> None:
    """Let numpy.empty fill arrays with zeros. Else what a program copies, such as padding, could hold leftovers, which
    are not the same in two runs."""
    np.empty = np.zeros  # type: ignore[misc]
    np.empty_like = np.zeros_like  # type: ignore[assignment]


def _add_to_trace(event: dict[str, object]) -> None:
    line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    name, _, number = os.environ.get(TRACE_VARIABLE, "").partition(":")
    with contextlib.suppress(OSError):
        if name == "fd":
            os.write(int(number), line)
        elif name:
            with Path(name).open("ab") as file:
                file.write(line)


def _run(main: Path, arguments: Sequence[str]) -> int:
    sys.argv[1:] = arguments
    try:
        runpy.run_path(str(main), run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException as error:
        print(_described(error, main), file=sys.stderr, end="")
        return 1
    return 0


def _described(error: BaseException, main: Path) -> str:
    """The error as Python prints it, but with only the program's lines, and its files under their submitted names."""
    place = ""
    if isinstance(error, CompilationError):
        with tokenize.open(main) as file:  # in the encoding that the file names
            place = _place_in_kernel(error, file.read())
    whole = traceback.TracebackException.from_exception(error, limit=-200)
    part: traceback.TracebackException | None = whole
    while part is not None:
        own = [frame for frame in part.stack if frame.filename.startswith(f"{main.parent}{os.sep}")]
        part.stack = traceback.StackSummary.from_list(own)
        part = part.__cause__ or part.__context__
    return place + "".join(whole.format()).replace(f"{main.parent}{os.sep}", "") + _advice(str(error))


def _advice(text: str) -> str:
    """Advice on errors whose text names no remedy; '' if there is none."""
    for part, advice in _ADVICE:
        if part in text:
            return f"note: {advice}\n"
    return ""


def _place_in_kernel(error: CompilationError, text: str) -> str:
    """The innermost line of the program that Triton cannot compile. Triton counts lines from the kernel's `def`."""
    cause = error.__cause__
    inner = _place_in_kernel(cause, text) if isinstance(cause, CompilationError) else ""
    before, found, _ = text.partition(error.src or "\0")
    if inner or not found or error.node is None:
        return inner
    line = before.count("\n") + error.node.lineno
    reason = error.error_message or (str(cause) if cause else "Triton cannot compile it")
    return f"{sys.argv[0].rpartition(os.sep)[2]}:{line}: error: {reason}\n"


def main() -> None:
    code = start(sys.argv[1], sys.argv[2:])
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    sys.exit(code)
