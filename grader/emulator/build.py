"""Builds an executable from .cu files: nvcc, translation, the host's C compiler, link.

x.cu ── nvcc -c ──► x.o (host code)  ──objcopy──────────┐
            └─────► x.ptx ── translate ─┬─ gcc ─────────┼── g++ ──► program
                      │     templates ──┴─ gcc, cached ─┤
                      └── ptxas: registers              │
y.cpp, y.c ── nvcc -c ──► y.o ──────────────────────────┤
runtime/*.c ── gcc, cached ─────────────────────────────┘

nvcc.py calls nvcc and ptxas. nvcc runs in the project's folder and gets file names relative to it, so __FILE__ and
messages contain relative names.
"""

from __future__ import annotations

import gc
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grader.base.process import Runner
from grader.emulator.isa import RUNTIME, binutil, host_compiler, instruction_set
from grader.emulator.native import compile_c, runtime_object, template_objects
from grader.emulator.nvcc import (
    MAX_OBJECT_BYTES,
    CompileFailed,
    Project,
    Unit,
    checked,
    compile_host,
    compile_unit,
    registers_of,
    toolkit_of,
)
from grader.emulator.nvcc_flags import NvccFlags
from grader.emulator.ptx import Module, PtxSyntaxError, link_modules, parse
from grader.emulator.translate import Finding, Translation, translate_module
from grader.emulator.translate.lacking import lacking_function
from grader.sandbox import quarantine

FILES_PER_UNIT = 10_000  # PTX file numbers reserved for each unit, so that the numbers of linked units do not clash
MAX_PTX_BYTES = 32 << 20
"""Five lines of source can become gigabytes of PTX, because PTX lists an array's initial values one by one."""
PART_BYTES = 120_000  # a C file of this size takes no further parts


class Unsupported(Exception):
    """The program uses features that the emulator lacks; `findings` say which, where, and what to use instead."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("; ".join(str(f) for f in findings))
        self.findings = tuple(findings)


@dataclass(frozen=True)
class EmulatedProgram:
    """A stand-alone executable, and the compilers' messages."""

    path: Path
    log: str


def compile_program(
    sources: Sequence[Path],
    output: Path,
    *,
    folder: Path | None = None,
    work: Path,
    written: Path | None = None,
    nvcc: Path,
    run: Runner,
    flags: Sequence[str] = (),
    target: str = "sm_80",
    watch: bool = False,
    count: bool = False,
    content: str = "",
) -> EmulatedProgram:
    """Compile and link `sources` into the executable `output`, with intermediate files in `work`. Files that the grader
    itself writes for the compilers go to `written`, which `run` must make read-only for them. The compilers run in
    `work` or in `folder`, never in a folder below `work`, because another compiler could have replaced it by a link.

    `folder` is the project's folder, by default the first source's: relative -I options and file names in messages are
    relative to it. `flags` are nvcc's, as in a student's Makefile; the architecture is always `target`; with -x=cu C++
    files are CUDA. Every command goes through `run`. With `watch` it looks for races and uninitialised reads too. With `count` the program's trace has counters (runtime/counters.h). `content` is a hash over the toolkit
    and everything that nvcc reads in `folder`; if it is given, nvcc's output is cached. Raises `CompileFailed`,
    `Unsupported`, and `MachineFault` if a compiler is missing.
    """
    work.mkdir(parents=True, exist_ok=True)
    written = written or work / "written"
    written.mkdir(exist_ok=True)
    work, written, output = work.resolve(), written.resolve(), output.resolve()
    if folder is None:
        sources = [source.resolve() for source in sources]
    folder = (folder or sources[0].parent).resolve()
    parsed = NvccFlags.parse(flags)
    project = Project(folder, work, written, nvcc, parsed, target, run, content)
    names = [os.path.relpath((folder / source).resolve(), folder) for source in sources]
    toolkit = toolkit_of(nvcc, run, work)
    with _tool_threads() as pool:
        runtime = pool.submit(runtime_object, toolkit.include, run, written)
        cuda = [name for name in names if parsed.is_cuda(name)]
        plain = [
            pool.submit(compile_host, project, name, f"host{i}")
            for i, name in enumerate(name for name in names if not parsed.is_cuda(name))
        ]
        units = list(pool.map(lambda s: compile_unit(project, s[1], f"unit{s[0]}"), enumerate(cuda)))
        objects: list[Future[Path]] = []
        lent: list[Path] = []
        findings: list[Finding] = []
        logs = [unit.log for unit in units] + [done.result()[1] for done in plain]
        infos = [pool.submit(registers_of, project, unit, toolkit.ptxas) for unit in units]
        try:
            modules = [_parse(unit, i * FILES_PER_UNIT) for i, unit in enumerate(units)]
        except Unsupported:
            for info in infos:
                info.result()  # if ptxas refuses the PTX too, its CompileFailed is the better report
            raise

        def registers() -> dict[str, int]:
            return {name: count for info in infos for name, count in info.result()[0].items()}

        if parsed.relocatable and modules:  # -rdc=true: device code of all files is one module
            modules = [link_modules(modules)]
        for i, module in enumerate(modules):
            prefix = f"m{i}"
            with _without_garbage_collection():
                translation, found = translate_module(
                    module,
                    prefix=prefix,
                    lanes=instruction_set().lanes,
                    registers=registers,
                    watch=watch,
                    count=count,
                )
            findings += found
            if found:
                continue
            glue = _linked_registration(units) if parsed.relocatable else ""
            per_thread = bool(_per_thread_names(units[i]))
            for text, name, level in module_sources(translation, prefix, glue, per_thread):
                objects.append(pool.submit(compile_c, text, written / f"{name}.c", level, run, work))
            cached, compilations = template_objects(translation.templates, translation.header, run, written)
            lent += cached
            objects += map(pool.submit, compilations)
        logs += [info.result()[1] for info in infos]
        for i, unit in enumerate(units):
            objects.append(pool.submit(_rename_registration, unit, f"m{i}", run, work))
        if findings:
            raise Unsupported(findings)
        finished = [o.result() for o in objects] + [done.result()[0] for done in plain]
        logs.append(_link([*dict.fromkeys((*finished, *lent)), runtime.result()], output, run, work, parsed))
    return EmulatedProgram(output, "".join(logs))


@contextmanager
def _tool_threads() -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for compilers. After an interrupt they start no further compiler."""
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
        try:
            yield pool
        except (KeyboardInterrupt, SystemExit):
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause Python's search for reference cycles: translation makes millions of objects that stay alive to the end, and
    the search takes a fifth of the time for a large program."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def runtime_identity() -> str:
    """A hash over translator, runtime, host compiler and instruction set: part of the key of every cached build."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".inc"):
            digest.update(path.relative_to(RUNTIME.parent).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update(instruction_set().identity.encode())
    return digest.hexdigest()


def _parse(unit: Unit, first_file: int) -> Module:
    """Parse a unit's PTX, and make the file names in it relative to the project's folder again (nvcc makes them
    absolute). The grader's own process needs about 20 bytes of memory to parse a byte of PTX: hence MAX_PTX_BYTES."""
    try:
        text = quarantine.read_text(unit.ptx.parent, unit.ptx.name, MAX_PTX_BYTES)
    except quarantine.Refused as refused:
        what = f"the PTX of {unit.source}, which {refused}"
        advice = "make the initial values of its __device__ variables, or its templates, smaller"
        raise Unsupported([Finding(what, unit.source, None, advice)]) from refused
    try:
        module = parse(text, first_file=first_file)
    except PtxSyntaxError as error:
        what = f"the PTX that nvcc generated from {unit.source} ({error})"
        raise Unsupported([Finding(what, unit.source, None, "run this program on a GPU (--engine cuda)")]) from error
    for number, file in module.files.items():
        module.files[number] = file.removeprefix(f"{unit.compiled_in}/")
    return module


# ---- gcc --------------------------------------------------------------------------------------------------------------


def module_sources(
    translation: Translation, prefix: str, glue: str, per_thread: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield (C text, name, optimisation level) of each C file of a module. A large part has a file of its own, small
    parts share one, and the largest come first, to compile in parallel for as long as possible."""
    batches: list[list[str]] = [[]]
    for part in sorted(translation.parts, key=len, reverse=True):
        if sum(map(len, batches[-1])) > PART_BYTES:
            batches.append([])
        batches[-1].append(part)
    for number, batch in enumerate(batches):
        # -Og compiles in a third of the time of -O2, and the kernels are at most 5 % slower.
        yield translation.header + translation.common + "\n".join(batch), f"{prefix}_{number}", "-Og"
    registration = (
        f"\nvoid **emu_register(struct module_info *, int per_thread);\nvoid **__cudaRegisterFatBinary_{prefix}(void *image) "
        f"{{ (void)image; return emu_register(&{prefix}_module, {int(per_thread)}); }}\n"
    )
    yield translation.tables + registration + glue, f"{prefix}_tables", "-O0"


def _object_bytes(unit: Unit) -> bytes:
    try:
        return quarantine.read_bytes(unit.object.parent, unit.object.name, MAX_OBJECT_BYTES)
    except quarantine.Refused as refused:
        raise CompileFailed(f"{unit.source}: its object file {refused}.") from refused


def _rename_registration(unit: Unit, prefix: str, run: Runner, work: Path) -> Path:
    """Copy the unit's object to `work`, and give the copy its own function that registers its kernels."""
    renamed = [f"__cudaRegisterFatBinary=__cudaRegisterFatBinary_{prefix}"]
    renamed += [f"{name}={name[:-5]}" for name in _per_thread_names(unit)]
    out = work / unit.object.parent.name / unit.object.name  # the linker's messages contain this name
    options = [f"--redefine-sym={pair}" for pair in renamed]
    checked(run([binutil("objcopy"), *options, str(unit.object), str(out)], work))
    return out


def _per_thread_names(unit: Unit) -> list[str]:
    """The suffixed names under which a unit calls runtime functions with --default-stream per-thread, such as
    cudaMemcpyAsync_ptsz and cudaMemcpy_ptds."""
    names = re.findall(rb"\b(?:__)?cuda\w+_pt[sd][zs]\b", _object_bytes(unit))
    return sorted({name.decode() for name in names})


def _linked_registration(units: Sequence[Unit]) -> str:
    """C text of the functions through which objects register themselves with -rdc=true. For a GPU, nvcc's device linker
    writes them."""
    per_thread = int(any(map(_per_thread_names, units)))
    lines = [
        f"\nstatic void **linked(void) {{ static void **h; if (!h) h = emu_register(&m0_module, {per_thread}); return h; }}"
    ]
    for unit in units:
        for name in sorted(set(re.findall(rb"__cudaRegisterLinkedBinary_\w+", _object_bytes(unit)))):
            lines.append(
                f"void {name.decode()}(void (*f)(void **), void *a, void *b, void (*g)(void *)) {{ (void)a, (void)b, (void)g; f(linked()); }}"
            )
    return "\n".join(lines) + "\n"


# ---- link ---------------------------------------------------------------------------------------------------------------


def _link(objects: Sequence[Path], output: Path, run: Runner, work: Path, flags: NvccFlags) -> str:
    command = [host_compiler("c++"), *map(str, objects), "-o", str(output), *flags.link, "-lpthread", "-lm"]
    done = run(command, work)
    if done.exit_code == 0:
        return done.output
    missing = sorted(set(re.findall(r"undefined reference to [`'](?:__)?((?:cuda|cu)[A-Z]\w*)'", done.output)))
    if missing:
        lacking = map(lacking_function, missing)
        raise Unsupported([Finding(found.what, None, None, found.advice) for found in lacking])
    raise CompileFailed(done.output)
