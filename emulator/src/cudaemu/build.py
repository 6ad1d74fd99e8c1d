"""Builds an executable from .cu files: nvcc, translation, the host's C compiler, link.

x.cu ─┬─ nvcc -c ──► x.o (host code)  ──objcopy─────────┐
      └─ nvcc -ptx ─► x.ptx ── translate ─┬─ gcc ───────┼── g++ ──► program
                        │   templates ──┴─ gcc, cached ─┤
                        └── ptxas: registers            │
y.cpp, y.c ── nvcc -c ──► y.o ──────────────────────────┤
runtime/*.c ── gcc, cached ─────────────────────────────┘

nvcc.py calls nvcc and ptxas. nvcc runs in the project's folder and gets file names relative to it, so __FILE__ and
messages contain relative names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from pathlib import Path

from cudaemu.errors import Exceeded, Unreadable
from cudaemu.extras import NONE, Extras
from cudaemu.host import Host
from cudaemu.isa import RUNTIME, binutil, host_compiler, instruction_set
from cudaemu.lacking import ON_A_GPU
from cudaemu.native import compile_c, runtime_object, template_objects
from cudaemu.nvcc import (
    MAX_OBJECT_BYTES,
    CompileFailed,
    Output,
    Project,
    checked,
    compile_host,
    compile_object,
    compile_ptx,
    name_as_in,
    registers_of,
    toolkit_of,
)
from cudaemu.nvcc_flags import NvccFlags
from cudaemu.translated import MissingFeature, ObjectNames, Translated
from cudaemu.translation import MAX_PTX_BYTES, missing_functions, read_object, translate

PTX_MARK = "GRADER PTX:"
"""Begins a unit's PTX in a program that counts."""


class Unsupported(Exception):
    """The program uses features that the emulator lacks; `findings` say which, where, and what to use instead."""

    def __init__(self, findings: Sequence[MissingFeature]) -> None:
        super().__init__("; ".join(str(f) for f in findings))
        self.findings = tuple(findings)


@dataclass(frozen=True)
class EmulatedProgram:
    """A stand-alone executable, and the compilers' messages."""

    path: Path
    log: str


@dataclass(frozen=True)
class Workplace:
    """Where a program is compiled. Intermediate files are in `work`. Files that the builder itself writes for the
    compilers go to `written`, which must be read-only for them. The compilers run in `work` or in `folder`, never in a
    folder below `work`, because another compiler could have replaced it by a link. `folder` is the project's folder, by
    default the first source's: relative -I options and file names in messages are relative to it. `content` is a hash
    over the toolkit and everything that nvcc reads in `folder`; if it is given, nvcc's output is cached."""

    work: Path
    folder: Path | None = None
    written: Path | None = None
    content: str = ""


def compile_program(
    sources: Sequence[Path],
    output: Path,
    place: Workplace,
    *,
    nvcc: Path,
    host: Host,
    flags: Sequence[str] = (),
    target: str = "sm_80",
    extras: Extras = NONE,
) -> EmulatedProgram:
    """Compile and link `sources` into the executable `output`. `flags` are nvcc's, as in a student's Makefile; the
    architecture is always `target`; with -x=cu C++ files are CUDA. `host` runs the compilers. Raises
    `CompileFailed`, `Unsupported`, and `MachineFault` if a compiler is missing.
    """
    work, folder = place.work, place.folder
    work.mkdir(parents=True, exist_ok=True)
    written = place.written or work / "written"
    written.mkdir(exist_ok=True)
    work, written, output = work.resolve(), written.resolve(), output.resolve()
    if folder is None:
        sources = [source.resolve() for source in sources]
    folder = (folder or sources[0].parent).resolve()
    parsed = NvccFlags.parse(flags)
    simple = extras.record
    few_runs = extras.few_runs and not (simple or extras.watch)  # these share what nvcc makes for all runs
    project = Project(folder, work, written, nvcc, parsed, target, host, place.content, simple, few_runs)
    names = [os.path.relpath((folder / source).resolve(), folder) for source in sources]
    with _tool_threads() as pool:
        runtime = pool.submit(_runtime, nvcc, host, work, written)
        cuda = [name for name in names if parsed.is_cuda(name)]
        kernels = [pool.submit(compile_ptx, project, name, f"ptx{i}") for i, name in enumerate(cuda)]
        plain = [
            pool.submit(compile_host, project, name, f"host{i}")
            for i, name in enumerate(name for name in names if not parsed.is_cuda(name))
        ]
        hosts = [pool.submit(compile_object, project, name, f"unit{i}") for i, name in enumerate(cuda)]
        ptx = [_named(project, *both) for both in zip(kernels, hosts, strict=True)]
        modules = [ptx] if parsed.relocatable and ptx else [[each] for each in ptx]  # linked to one with -rdc=true
        translating = [pool.submit(_translated, module, i, extras, host) for i, module in enumerate(modules)]
        sized = ptx if not extras.few_runs else []
        infos = [pool.submit(registers_of, project, each, toolkit_of(nvcc, host, work).ptxas) for each in sized]
        try:
            translations = [each.result() for each in translating]
        except Unsupported:
            better: tuple[Future[Output] | Future[tuple[dict[str, int], str]], ...] = (*hosts, *infos)
            for each in better:
                each.result()  # a CompileFailed of another compiler is the better report
            raise
        objects: list[Future[Path]] = []
        lent: list[Path] = []
        findings = [found for translation in translations for found in translation.findings]
        for translation in translations if not findings else ():
            for file in translation.files:
                objects.append(pool.submit(compile_c, file.text, written / f"{file.name}.c", file.level, host, work))
            cached, compilations = template_objects(translation.templates, translation.header, host, written)
            lent += cached
            objects += map(pool.submit, compilations)
        units = [each.result() for each in hosts]
        names_in = [_object_names(unit, host) for unit in units]
        logs = [each.log for each in (*units, *(done.result() for done in plain))]
        registers = {name: count for info in infos for name, count in info.result()[0].items()}
        for i, translation in enumerate(translations if not findings else ()):
            glue = linked_registration(names_in) if parsed.relocatable else ""
            tables = tables_text(translation, f"m{i}", registers, per_thread=bool(names_in[i].per_thread)) + glue
            tables += carried_ptx(each.file for each in modules[i]) if extras.count else ""
            objects.append(pool.submit(compile_c, tables, written / f"m{i}_tables.c", "-O0", host, work))
        logs += [info.result()[1] for info in infos]
        for i, unit in enumerate(units):
            objects.append(pool.submit(_rename_registration, unit, names_in[i], f"m{i}", host, work, written))
        if findings:
            raise Unsupported(findings)
        finished = [o.result() for o in objects] + [done.result().file for done in plain]
        logs.append(_link([*dict.fromkeys((*finished, *lent)), runtime.result()], output, host, work, parsed))
    return EmulatedProgram(output, "".join(logs))


def _named(project: Project, ptx: Future[Output], unit: Future[Output]) -> Output:
    """The PTX of a unit, with the names that its object has. Raises CompileFailed, with the object's messages if it does
    not compile either."""
    try:
        made = ptx.result()
    except CompileFailed:
        unit.result()
        raise
    if project.content:  # else nothing comes from the cache
        name_as_in(unit, made, project.host)
    return made


def _runtime(nvcc: Path, host: Host, work: Path, written: Path) -> Path:
    return runtime_object(toolkit_of(nvcc, host, work).include, host, written)


def carried_ptx(files: Iterable[Path]) -> str:
    """C text that puts files of PTX into the program: the trace of a program that counts names lines of it. Each
    follows PTX_MARK and its size in bytes, a 64-bit number."""
    lines = []
    for file in files:
        quoted = "".join(f"\\{byte:03o}" for byte in os.fsencode(file))
        text = f'.section .grader_ptx\n.ascii "{PTX_MARK}"\n.quad 1f - 0f\n0: .incbin "{quoted}"\n1:\n.previous'
        lines.append(f"__asm__({json.dumps(text, ensure_ascii=False)});\n")
    return "".join(lines)


@contextmanager
def _tool_threads() -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for compilers. After an interrupt they start no further compiler."""
    most = max(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(most, initializer=_take_over, initargs=(copy_context(),)) as pool:
        try:
            yield pool
        except (KeyboardInterrupt, SystemExit):
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _take_over(context: Context) -> None:
    """Give this thread the context variables of another, such as a limit that a step's calls share."""
    for variable, value in context.items():
        variable.set(value)


def runtime_identity() -> str:
    """A hash over translator, runtime, host compiler and instruction set: part of the key of every cached build."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".inc"):
            digest.update(path.relative_to(RUNTIME.parent).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update(instruction_set().identity.encode())
    return digest.hexdigest()


def _translated(units: Sequence[Output], number: int, extras: Extras, host: Host) -> Translated:
    """Translate a module. nvcc makes the file names in PTX absolute; they become relative to the project's folder."""
    names = ", ".join(unit.source for unit in units)
    with ExitStack() as files:
        opened = []
        for unit in units:
            try:
                opened.append(files.enter_context(host.open(unit.file, MAX_PTX_BYTES)))
            except Unreadable as refused:
                advice = "make the initial values of its __device__ variables, or its templates, smaller"
                what = f"the PTX of {unit.source}, which {refused}"
                raise Unsupported([MissingFeature(what, unit.source, None, advice)]) from refused
        try:
            return host.read(
                translate,
                opened,
                prefix=f"m{number}",
                below=str(units[0].compiled_in),
                lanes=instruction_set().lanes,
                extras=extras,
            )
        except Exceeded as exceeded:
            what, advice = f"the PTX of {names}, whose translation {exceeded},", "make its kernels or templates smaller"
            raise Unsupported([MissingFeature(what, units[0].source, None, advice)]) from exceeded
        except Unreadable as error:
            what, advice = f"the PTX that nvcc generated from {names} ({error})", ON_A_GPU
            raise Unsupported([MissingFeature(what, units[0].source, None, advice)]) from error


# ---- gcc --------------------------------------------------------------------------------------------------------------


def tables_text(translation: Translated, prefix: str, registers: Mapping[str, int], *, per_thread: bool) -> str:
    """C text of a module's tables, and of the function with which its host code registers it. `registers` has each
    kernel's registers per thread."""
    counts = (f"#define REGISTERS_{i} {registers.get(name, 32)}\n" for i, name in enumerate(translation.kernels))
    return (
        "".join(counts) + translation.tables + "\nvoid **emu_register(struct module_info *, int per_thread);\n"
        f"void **__cudaRegisterFatBinary_{prefix}(void *image) "
        f"{{ (void)image; return emu_register(&{prefix}_module, {int(per_thread)}); }}\n"
    )


def _object_names(unit: Output, host: Host) -> ObjectNames:
    try:
        with host.open(unit.file, MAX_OBJECT_BYTES) as file:
            return host.read(read_object, file)
    except Unreadable as refused:
        raise CompileFailed(f"{unit.source}: its object file {refused}.") from refused


def _rename_registration(unit: Output, names: ObjectNames, prefix: str, host: Host, work: Path, written: Path) -> Path:
    """Copy the unit's object to `work`, and give the copy its own function that registers its kernels."""
    renamed = [f"__cudaRegisterFatBinary __cudaRegisterFatBinary_{prefix}"]
    renamed += [f"{name} {name[:-5]}" for name in names.per_thread]
    pairs = written / f"{prefix}.names"  # a file, because a command line could become too long
    pairs.write_text("\n".join(renamed) + "\n")
    out = work / unit.file.parent.name / unit.file.name  # the linker's messages contain this name
    checked(host.run([binutil("objcopy"), f"--redefine-syms={pairs}", str(unit.file), str(out)], work))
    return out


def linked_registration(names: Sequence[ObjectNames]) -> str:
    """C text of the functions through which objects register themselves with -rdc=true. For a GPU, nvcc's device linker
    writes them."""
    per_thread = int(any(each.per_thread for each in names))
    lines = [
        f"\nstatic void **linked(void) {{ static void **h; if (!h) h = emu_register(&m0_module, {per_thread}); return h; }}"
    ]
    for name in dict.fromkeys(name for each in names for name in each.linked):
        lines.append(
            f"void {name}(void (*f)(void **), void *a, void *b, void (*g)(void *)) {{ (void)a, (void)b, (void)g; f(linked()); }}"
        )
    return "\n".join(lines) + "\n"


# ---- link ---------------------------------------------------------------------------------------------------------------


def _link(objects: Sequence[Path], output: Path, host: Host, work: Path, flags: NvccFlags) -> str:
    command = [host_compiler("c++"), *map(str, objects), "-o", str(output), *flags.link, "-lpthread", "-lm"]
    done = host.run(command, work)
    if done.exit_code == 0:
        return done.output
    try:
        missing = host.read(missing_functions, done.output)
    except Unreadable:
        missing = []
    if missing:
        raise Unsupported(missing)
    raise CompileFailed(done.output)
