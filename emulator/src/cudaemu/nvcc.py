"""Calls nvcc and ptxas, which turn a source file into a host object, PTX, and its kernels' register counts.

nvcc takes most of a build's time, and its output does not depend on the emulator's checks. So the output is cached,
and a build with other checks, such as a closer look, reuses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from cudaemu.errors import MachineFault
from cudaemu.host import Host, confined
from cudaemu.nvcc_flags import NvccFlags
from cudaemu.process import Completed
from cudaemu.translated import MAX_KERNELS, Name
from cudaemu.translation import MAX_PTX_BYTES

HOST_LINES = ("-gdwarf-4", "-g1", "-fno-optimize-sibling-calls")
"""Without tail calls, every return address has the source line of its call. Of DWARF 5, addr2line before binutils 2.42
gives a section's first lines the first file's name (binutils PR 30783), which is that of nvcc's intermediate file."""
MAX_OBJECT_BYTES = 512 << 20


class CompileFailed(Exception):
    """nvcc, the host compiler or the linker rejected the program. `log` holds their messages."""

    def __init__(self, log: str) -> None:
        super().__init__(log.strip().splitlines()[-1] if log.strip() else "compilation failed")
        self.log = log


@dataclass(frozen=True)
class Project:
    """What every call of nvcc needs. nvcc runs in `folder`; compilers write below `work`, and only the builder writes
    to `written`. `content` is a hash over everything that the compilers read, or '' to cache nothing.
    `simple`: math functions are compiled to single instructions. `few_runs`: loops are not unrolled, which is quick."""

    folder: Path
    work: Path
    written: Path
    nvcc: Path
    flags: NvccFlags
    target: str
    host: Host
    content: str
    simple: bool = False
    few_runs: bool = False


@dataclass(frozen=True)
class Unit:
    """One CUDA source compiled by nvcc; `source` is relative to the project's folder. The paths of sources in `ptx`
    begin with `compiled_in`."""

    source: str
    object: Path
    ptx: Path
    log: str
    compiled_in: Path


@dataclass(frozen=True)
class NvccToolkit:
    ptxas: Path
    include: Path


_toolkits: dict[tuple[Path, str | None], NvccToolkit] = {}


def toolkit_of(nvcc: Path, host: Host, work: Path) -> NvccToolkit:
    """The paths of nvcc's ptxas and headers, as reported by nvcc."""
    key = (nvcc, os.environ.get("NVCC_CCBIN"))  # with a cross compiler nvcc reports the other processor's headers
    known = _toolkits.get(key)
    if known is not None:
        return known
    done = host.run([str(nvcc), "--dryrun", "-c", "-x", "cu", "/dev/null", "-o", "/dev/null"], work)
    here = re.search(r"^#\$ _HERE_=(.+)$", done.output, re.M)
    include = re.search(r'^#\$ INCLUDES="-I([^"]+)"', done.output, re.M)
    if not here or not include:
        raise MachineFault(
            f"{nvcc} does not report the path of its toolkit; check the CUDA installation. "
            f"nvcc --dryrun printed: {done.output.strip()[:200]}"
        )
    found = NvccToolkit(Path(here[1].strip()) / "ptxas", Path(os.path.normpath(include[1])))
    _toolkits[key] = found
    return found


# ---- calls --------------------------------------------------------------------------------------------------------


def compile_unit(project: Project, source: str, name: str) -> Unit:
    """Compile a CUDA source with nvcc, in the folder `name` below `work`."""
    stem = Path(source).stem
    number = project.target.removeprefix("sm_")
    work, lines = project.work / name, ",".join(_host_lines(project.folder))
    command = [
        str(project.nvcc), *project.flags.compile, "-c", "-lineinfo", "-Xcompiler", lines,
        "--keep", "--keep-dir", str(work), "-gencode", f"arch=compute_{number},code=compute_{number}",
        "-x", "cu", source, "-o", str(work / f"{stem}.o"),
    ]  # fmt: skip
    if project.flags.relocatable:
        command.insert(1, "-rdc=true")
    if project.few_runs:
        command[1:1] = ["-Xcicc", "-O1"]
    made = _make(project, command, source, name, f"{stem}.o", f"{stem}.ptx")
    unit = Unit(source, made.folder / f"{stem}.o", made.folder / f"{stem}.ptx", made.log, made.compiled_in)
    return _simple(project, unit, name) if project.simple else unit


def _simple(project: Project, unit: Unit, name: str) -> Unit:
    """The unit with the PTX of `compile_simple`."""
    made = compile_simple(project, unit.source, name)
    ptx = made.folder / f"{Path(unit.source).stem}.ptx"
    if made.compiled_in != unit.compiled_in and ptx.stat().st_size <= MAX_PTX_BYTES:
        with ptx.open("rb") as own, unit.ptx.open("rb") as objects:
            before, after = (project.host.read(module_id, file) for file in (own, objects))
        if before and after:  # a file in the cache; this is its copy
            ptx.write_bytes(ptx.read_bytes().replace(before.encode(), after.encode()))
    return replace(unit, ptx=ptx, compiled_in=made.compiled_in)


def compile_simple(project: Project, source: str, name: str) -> _Made:
    """PTX in which exp, log and division are one instruction each, for translate/watching.py."""
    out, name = f"{Path(source).stem}.ptx", f"{name}simple"
    command = [
        str(project.nvcc), *project.flags.compile, "-lineinfo", "-use_fast_math",
        f"-arch=compute_{project.target.removeprefix('sm_')}", "--ptx", "-x", "cu", source,
        "-o", str(project.work / name / out),
    ]  # fmt: skip
    if project.flags.relocatable:
        command.insert(1, "-rdc=true")
    return _make(project, command, source, name, out)


@confined(cpu_s=10)
def module_id(ptx: IO[bytes]) -> Annotated[str, Field(max_length=10)]:
    """The part of names without external linkage that differs between units, '' if there are none. nvcc makes it from
    the folder in which it runs, so the same source compiled elsewhere has another."""
    found = re.search(rb"(?:_GLOBAL__N_|__nv_static_\d{1,9}_)(_[0-9a-f]{8}_)", ptx.read(MAX_PTX_BYTES))
    return found[1].decode() if found else ""


def compile_host(project: Project, source: str, name: str) -> tuple[Path, str]:
    """Compile a source without device code, which nvcc passes to gcc or g++, and return (object, log)."""
    out = f"{Path(source).stem}.o"
    flags = project.flags.of_c if source.endswith(".c") else project.flags.compile
    lines = ",".join(_host_lines(project.folder))
    command = [str(project.nvcc), *flags, "-c", "-Xcompiler", lines, source, "-o", str(project.work / name / out)]
    made = _make(project, command, source, name, out)
    return made.folder / out, made.log


def registers_of(project: Project, unit: Unit, ptxas: Path) -> tuple[dict[str, int], str]:
    """Compile a unit's PTX with ptxas, only for its messages, and return (registers per thread by kernel, log)."""
    options = ("-c", *project.flags.ptxas) if project.flags.relocatable else project.flags.ptxas
    command = [str(ptxas), *options, "-v", f"-arch={project.target}", str(unit.ptx), "-o", os.devnull]
    log = _make(project, command, unit.source, unit.ptx.parent.name).log
    return project.host.read(read_registers, log), log if project.flags.verbose_ptxas else ""


@confined(cpu_s=10)
def read_registers(log: str) -> Annotated[dict[Name, int], Field(max_length=MAX_KERNELS)]:
    """Each kernel's registers per thread, as `ptxas -v` reports them; 0 where it reports none."""
    found = {}
    for part in re.split(r"ptxas info\s*: Compiling entry function ", log)[1:]:
        if name := re.match(r"'([^']+)'", part):
            own = part.split(f"Function properties for {name[1]}", 1)[-1]
            used = re.search(r"Used (\d{1,15}) registers", own)
            found[name[1]] = int(used[1]) if used else 0
    return found


def checked(done: Completed) -> str:
    """The compiler's messages if it succeeded. Raises CompileFailed if it did not."""
    if done.exit_code != 0:
        raise CompileFailed(done.output)
    return done.output


def _host_lines(folder: Path) -> Iterator[str]:
    """g++'s options that keep line numbers in the program, with file names relative to `folder`."""
    yield from HOST_LINES
    if re.fullmatch(r"[\w./+@-]+", str(folder)):  # nvcc splits options at commas and passes them through a shell
        yield f"-fdebug-prefix-map={folder}=."


@dataclass(frozen=True)
class _Made:
    folder: Path
    log: str
    compiled_in: Path


def _make(project: Project, command: Sequence[str], source: str, name: str, *files: str) -> _Made:
    """Run `command`, which compiles `source` and writes `files` into the folder `name` below `work`, or take the files
    from the cache. Raises CompileFailed."""
    work, lent = project.work / name, project.written / name
    work.mkdir(exist_ok=True)
    if not project.content:
        return _Made(work, checked(project.host.run(command, project.folder)), project.folder)
    own = (f"{project.folder}/", f"{work}/", f"{lent}/")

    def make(scratch: Path) -> Path:
        log = _without(own, checked(project.host.run(command, project.folder)))
        (scratch / "made").mkdir()
        for file in files:
            made = scratch / "made" / file
            if not project.host.claim(work / file, made):
                raise CompileFailed(f"{log}\n{Path(command[0]).name} ended without an error but wrote no {file}.")
            if made.stat().st_size > MAX_OBJECT_BYTES:
                raise CompileFailed(f"{source}: {file} is larger than {MAX_OBJECT_BYTES >> 20} MB.")
        (scratch / "made/facts.json").write_text(json.dumps({"log": log, "folder": str(project.folder)}))
        return scratch / "made"

    places = (str(project.folder), str(project.work), str(project.written))
    words = (project.content, repr(project.flags), source, *(_without(places, word) for word in command))
    digest = hashlib.sha256("\0".join((*words, os.environ.get("NVCC_CCBIN", ""))).encode()).hexdigest()
    entry = project.host.kept("nvcc", digest[:32], make)
    lent.mkdir(exist_ok=True)
    for file in files:
        shutil.copyfile(entry / file, lent / file)
    facts = json.loads((entry / "facts.json").read_text())
    return _Made(lent, facts["log"], Path(facts["folder"]))


def _without(folders: Sequence[str], text: str) -> str:
    for folder in folders:
        text = text.replace(folder, "")
    return text
