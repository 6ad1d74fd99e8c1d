"""Python submissions: their package, which takes the place of a compiled program, and how it is started.

The package is a zip file with the submission's files and the kernels that Triton compiled for it in the build step. In
that step the program runs once for each of a few inputs, with zeros in place of values, and launches no kernel.
Compiling takes seconds, which then do not count as run time. A kernel that the build step did not see is compiled when
it is launched.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import json
import os
import sys
import time
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grader
from grader import emulator, sandbox
from grader.base.errors import GraderFault, MachineFault
from grader.base.process import Runner
from grader.base.verdict import Fault
from grader.emulator.isa import VARIABLE as ISA_VARIABLE
from grader.programs.engine.interface import Compiled, Launch
from grader.programs.toolkit import Toolkit
from grader.python import layout
from grader.python.layout import kernel_name
from grader.sandbox import memory_share, quarantine
from grader.sandbox.bounded import Bounded, Exceeded
from grader.sandbox.scratch import scratch_folder
from grader.sandbox.walk import files_below

PACKAGE = "program.pyz"
KERNEL_FOLDER = "libraries"
"""A folder next to a package; during the build, the compilers of the package's kernels may write to it."""
INSTALL = f"{sys.executable} -m pip install 'triton>=3.6,<3.10'"
START = "import sys; sys.path[:0] = {{{!r}}}.difference(sys.path); from grader.python.host import main; main()"
"""Starts a package. The sandbox passes no PYTHONPATH on, through which the grader itself may have been found."""
_TRANSLATING_S = 60.0
"""After this time, the build translates no further kernel for the emulator. Chosen."""
_MEMORY_BYTES = 8 << 30
_KEPT_FILES, _KEPT_FILE_BYTES, _KEPT_BYTES = 1000, 4 << 20, 256 << 20
_MAX_QUOTED = 200
_bounded = Bounded(20, 1 << 30)


def is_package(program: Path) -> bool:
    return program.name == PACKAGE


def identity() -> str:
    """The versions that a package depends on, in addition to the submission and the engine."""
    return f"package 3 python {sys.version} triton {triton_version()}"


def triton_version() -> str:
    """The version of Triton; '' if it is not installed."""
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return ""


# ---- building -----------------------------------------------------------------------------------------------------


def pack(main: str, folder: Path, output: Path, launch: Launch, inputs: Sequence[Path], *, limit_s: float) -> Compiled:
    """Write the package of the submission in `folder` to `output`, with the kernels that running it on `inputs` needs.
    `launch` starts a package so that kernels are compiled and not launched."""
    if not triton_version():
        raise MachineFault(f"Python submissions need Triton, which is not installed here: run `{INSTALL}`.")
    names = sorted(path.relative_to(folder).as_posix() for path in files_below(folder))
    content = {f"{layout.SOURCE}/{name}": (folder / name).read_bytes() for name in names}
    sources = [(name, content[f"{layout.SOURCE}/{name}"]) for name in names]
    try:
        problem = _bounded.call(syntax_problem, sources)
        functions = _bounded.call(function_names, sources) if not problem else []
    except Exceeded:
        problem = f"{main}:1: error: Python cannot parse it: it is nested too deeply, or too large"
    if problem:
        return Compiled(Fault.STUDENT, problem)
    content[layout.MAIN], content[layout.NAMES] = main.encode(), json.dumps(functions).encode()
    _write_package(output, content)
    with scratch_folder("kernels", output.parent) as cache:
        log = _compile_kernels(output, cache, launch, inputs, limit_s)
        if log and (problem := start_problem(output, launch, limit_s)):
            raise MachineFault(f"{problem}. Run `{INSTALL}`.")
        room = _KEPT_BYTES
        left = (path.relative_to(cache).as_posix() for path in files_below(cache))
        for name in sorted(filter(str.isascii, left))[:_KEPT_FILES]:  # Triton's own names are
            with contextlib.suppress(quarantine.Refused):  # the program could leave a link or a pipe here
                kept = quarantine.read_bytes(cache, name, min(room, _KEPT_FILE_BYTES))
                content[f"{layout.CACHE}/{name}"] = kept
                room -= len(kept)
    _write_package(output, content)
    return Compiled(None, log)


def add_emulated_kernels(package: Path, on: Emulated, run: Runner) -> Compiled:
    """Translate the kernels in a package for the emulator, with `run` for the compilers."""
    with zipfile.ZipFile(package) as packed:
        kernels = {packed.read(name) for name in packed.namelist() if name.endswith(".ptx")}
    made: dict[str, bytes] = {}
    ends = time.monotonic() + _TRANSLATING_S
    for ptx in kernels:
        if time.monotonic() > ends:
            break  # the run translates the others when it launches them
        with (
            scratch_folder("kernel", package.parent / KERNEL_FOLDER) as work,
            scratch_folder("c", package.parent.parent) as written,
        ):
            try:
                library = emulator.compile_kernel(
                    ptx.decode(errors="replace"),
                    target=on.target,
                    ptxas=str(on.toolkit.nvcc.with_name("ptxas")),
                    checks=on.checks,
                    work=work,
                    written=written,
                    run=run,
                    below=f"/{layout.SOURCE}",
                )
            except (emulator.Unsupported, GraderFault) as fault:
                return Compiled(Fault.STUDENT, str(fault), lacking=True)
            except emulator.CompileFailed:
                continue  # the run compiles this kernel again and reports the error
            made[kernel_name(ptx)] = quarantine.read_bytes(library.parent, library.name, _KEPT_FILE_BYTES)
    with zipfile.ZipFile(package, "a", zipfile.ZIP_STORED) as packed:
        for name, content in made.items():
            packed.writestr(f"{layout.KERNELS}/{name}", content)
    return Compiled(None, "")


def syntax_problem(files: Sequence[tuple[str, bytes]]) -> str:
    """The first syntax error in the files, in the format of a compiler's message; '' if there is none."""
    for name, content in files:
        if b"\0" in content:
            line = content[: content.index(b"\0")].count(b"\n") + 1
            return f"{name}:{line}: error: a null byte, which Python source cannot contain: save the file as UTF-8"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(content, name, "exec", dont_inherit=True)  # ast.parse lets `return` outside a function pass
        except SyntaxError as error:
            return f"{name}:{error.lineno or 1}: error: {error.msg}\n    {(error.text or '').strip()[:_MAX_QUOTED]}"
        except (ValueError, RecursionError) as error:
            return f"{name}:1: error: {error}"
    return ""


def function_names(files: Sequence[tuple[str, bytes]]) -> list[str]:
    """The names of all functions that the files define. A kernel has the name of the function that it is compiled
    from."""
    nodes = (node for _, content in files for node in ast.walk(ast.parse(content)))
    return sorted({node.name for node in nodes if isinstance(node, ast.FunctionDef)})


def own_kernels(program: Path) -> frozenset[str] | None:
    """The names that a package's own kernels can have; None for other programs."""
    if not is_package(program):
        return None
    with zipfile.ZipFile(program) as packed:
        return frozenset(json.loads(packed.read(layout.NAMES)))


def minimal_package(folder: Path, modules: Sequence[str]) -> Path:
    """A package that imports what every program needs, and `modules`, and uses the device once."""
    imports = "".join(f"import {name}\n" for name in ("numpy", "triton.language", *modules))
    main = f"{imports}from device_arrays import to_numpy, zeros\nto_numpy(zeros((1,)))\n"
    package = folder / PACKAGE
    content = {layout.MAIN: "main.py", layout.NAMES: "[]", f"{layout.SOURCE}/main.py": main}
    _write_package(package, {name: text.encode() for name, text in content.items()})
    return package


def _write_package(output: Path, content: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as package:
        for name, data in content.items():
            package.writestr(name, data)
    output.chmod(0o755)


def _compile_kernels(package: Path, cache: Path, launch: Launch, inputs: Sequence[Path], limit_s: float) -> str:
    """Run the package on `inputs`, so that Triton writes its kernels to `cache`. Return the program's messages if it
    fails. That is no error here, since the program fails again when it is run."""
    with scratch_folder("compile", package.parent) as work:
        arguments = [word for number, path in enumerate(inputs) for word in (str(path), str(work / f"output{number}"))]
        job = sandbox.Job(
            command=(*launch.command, *arguments),
            folder=work,
            environment={**launch.environment, layout.CACHE_VARIABLE: str(cache)},
            readable=(package, *inputs, *launch.readable),
            writable=(cache,),
        )
        memory_bytes = memory_share.of_a_program(_MEMORY_BYTES)
        outcome = sandbox.run(job, sandbox.Limits(wall_s=limit_s, memory_bytes=memory_bytes, folder_bytes=2 << 30))
    return outcome.stderr if outcome.exit_code else ""


def start_problem(package: Path, launch: Launch, limit_s: float = 60) -> str:
    """The reason why `launch` can start no package on this machine; '' if it can start a minimal one, which replaces
    `package`."""
    minimal_package(package.parent, ())
    with scratch_folder("kernels", package.parent) as cache:
        said = _compile_kernels(package, cache, launch, (), limit_s).strip()
    if not said:
        return ""
    return (
        f"Python programs cannot be started: {said.splitlines()[-1]}. They can import only what is installed for "
        f"{sys.executable}, nothing from PYTHONPATH or `pip install --user`"
    )


# ---- running ------------------------------------------------------------------------------------------------------


def _launch(
    program: Path, arguments: Sequence[str], environment: Mapping[str, str], readable: Sequence[Path] = ()
) -> Launch:
    start = START.format(str(Path(grader.__file__).resolve().parent.parent))
    return Launch(
        command=(sys.executable, "-sPBc", start, str(program), *arguments),
        environment=environment,
        readable=(*_python_paths(), *readable),
    )


def _python_paths() -> tuple[Path, ...]:
    """The files of this Python, its packages and the grader's own."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    folders |= {Path(grader.__file__).resolve().parent}
    return tuple(folder for folder in folders if not folder.is_relative_to("/usr"))


def on_gpu(program: Path, arguments: Sequence[str]) -> Launch:
    """How to start a package on a GPU. The engine adds devices and the tracer."""
    return replace(_launch(program, arguments, {layout.ENGINE_VARIABLE: "cuda"}), starts_processes=True)


@dataclass(frozen=True)
class Emulated:
    """The emulator, as far as a package depends on it: the toolkit, the emulated architecture, and the checks."""

    toolkit: Toolkit
    target: str
    checks: frozenset[str]

    @property
    def environment(self) -> dict[str, str]:
        return {layout.TARGET_VARIABLE: self.target, "GRADER_TRITON_CHECKS": ",".join(sorted(self.checks))}


def emulated(program: Path, arguments: Sequence[str], on: Emulated, engine: str = "emulator") -> Launch:
    """How to start a package on the emulator. With the engine `compile`, the package compiles its kernels and runs none
    of them."""
    return _with_runtime(program, arguments, on.toolkit, {layout.ENGINE_VARIABLE: engine, **on.environment})


def compiling_for_gpu(program: Path, toolkit: Toolkit, architecture: str) -> Launch:
    """How to start a package so that it compiles its kernels for a GPU's `architecture` and runs none of them."""
    return _with_runtime(program, (), toolkit, {layout.ENGINE_VARIABLE: f"compile:{architecture}"})


def _with_runtime(program: Path, arguments: Sequence[str], toolkit: Toolkit, environment: dict[str, str]) -> Launch:
    own = Path(emulator.__file__).parent
    paths = (toolkit.root, *toolkit.added_headers, own, *emulator.host_compiler_folders())
    library = emulator.runtime_library(toolkit.include, sandbox.runner(300, readable=paths))
    chosen = {name: os.environ[name] for name in (ISA_VARIABLE, "CC", "CXX") if name in os.environ}
    return _launch(
        program,
        arguments,
        {**environment, **chosen, "GRADER_TRITON_RUNTIME": str(library)},
        (library, *emulator.host_compiler_folders()),
    )
