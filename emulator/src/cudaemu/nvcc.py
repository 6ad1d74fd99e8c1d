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
from concurrent.futures import Future
from dataclasses import dataclass
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
class Output:
    """What a compiler made of one source, whose name is relative to the project's folder: `file`, and messages. The
    names of sources in PTX begin with `compiled_in`, which is another folder if `file` comes from the cache."""

    source: str
    file: Path
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


def compile_object(project: Project, source: str, name: str) -> Output:
    """Compile a CUDA source's host code, in the folder `name` below `work`. Its kernels, which nobody runs from there,
    are compiled in the shortest time."""
    number = project.target.removeprefix("sm_")
    kernels = ("-Xcicc", "-O0", "-gencode", f"arch=compute_{number},code=compute_{number}")
    options = ("-c", "-lineinfo", "-Xcompiler", ",".join(_host_lines(project.folder)), *kernels, "-x", "cu", source)
    return _make(project, _nvcc(project, *options), source, name, f"{Path(source).stem}.o")


def compile_ptx(project: Project, source: str, name: str) -> Output:
    """Compile a CUDA source's kernels to PTX, in the folder `name` below `work`: what nvcc makes for the object, but
    without waiting for host code. PTX of a `simple` project has one instruction each for exp, log and division, for
    translate/watching.py."""
    how = ["-use_fast_math"] if project.simple else ["-Xcicc", "-O1"] if project.few_runs else []
    options = (*how, "-lineinfo", f"-arch=compute_{project.target.removeprefix('sm_')}", "--ptx", "-x", "cu", source)
    return _make(project, _nvcc(project, *options), source, name, f"{Path(source).stem}.ptx")


def _nvcc(project: Project, *options: str) -> list[str]:
    relocatable = ["-rdc=true"] if project.flags.relocatable else []
    return [str(project.nvcc), *relocatable, *project.flags.compile, *options]


def name_as_in(unit: Future[Output], ptx: Output, host: Host) -> None:
    """Give `ptx` the names that the object `unit` has: one of them may come from the cache, compiled elsewhere. Only
    names without external linkage differ, so without any the object need not be ready."""
    if ptx.file.stat().st_size > MAX_PTX_BYTES:
        return
    with ptx.file.open("rb") as file:
        before = host.read(module_id, file)
    if before and ptx.compiled_in != unit.result().compiled_in:
        with unit.result().file.open("rb") as file:
            after = host.read(module_id, file)
        if after:
            ptx.file.write_bytes(ptx.file.read_bytes().replace(before.encode(), after.encode()))


@confined(cpu_s=10, memory_bytes=2 << 30)
def module_id(file: IO[bytes]) -> Annotated[str, Field(max_length=10)]:
    """The part of names without external linkage that differs between units, in PTX or an object; '' if it has none.
    nvcc makes it from the folder in which it runs, so the same source compiled elsewhere has another."""
    found = re.search(rb"(?:_GLOBAL__N_|__nv_static_\d{1,9}_)(_[0-9a-f]{8}_)", file.read(MAX_OBJECT_BYTES))
    return found[1].decode() if found else ""


def compile_host(project: Project, source: str, name: str) -> Output:
    """Compile a source without device code to an object; nvcc passes it to gcc or g++."""
    flags = project.flags.of_c if source.endswith(".c") else project.flags.compile
    command = [str(project.nvcc), *flags, "-c", "-Xcompiler", ",".join(_host_lines(project.folder)), source]
    return _make(project, command, source, name, f"{Path(source).stem}.o")


def registers_of(project: Project, ptx: Output, ptxas: Path) -> tuple[dict[str, int], str]:
    """Compile a unit's PTX with ptxas, only for its messages, and return (registers per thread by kernel, log)."""
    options = ("-c", *project.flags.ptxas) if project.flags.relocatable else project.flags.ptxas
    command = [str(ptxas), *options, "-v", f"-arch={project.target}", str(ptx.file), "-o", os.devnull]
    log = _make(project, command, ptx.source, ptx.file.parent.name).log
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


def _make(project: Project, command: Sequence[str], source: str, name: str, file: str = "") -> Output:
    """Run `command`, which compiles `source` and writes `file`, if given, into the folder `name` below `work`, or take
    the file from the cache. Raises CompileFailed."""
    work, lent = project.work / name, project.written / name
    work.mkdir(exist_ok=True)
    command = [*command, "-o", str(work / file)] if file else command
    if not project.content:
        return Output(source, work / file, checked(project.host.run(command, project.folder)), project.folder)
    own = (f"{project.folder}/", f"{work}/", f"{lent}/")

    def make(scratch: Path) -> Path:
        log, kept = _without(own, checked(project.host.run(command, project.folder))), scratch / "made"
        kept.mkdir()
        if file and not project.host.claim(work / file, kept / file):
            raise CompileFailed(f"{log}\n{Path(command[0]).name} ended without an error but wrote no {file}.")
        if file and (kept / file).stat().st_size > MAX_OBJECT_BYTES:
            raise CompileFailed(f"{source}: {file} is larger than {MAX_OBJECT_BYTES >> 20} MB.")
        (kept / "facts.json").write_text(json.dumps({"log": log, "folder": str(project.folder)}))
        return kept

    places = (str(project.folder), str(project.work), str(project.written))
    words = (project.content, repr(project.flags), source, *(_without(places, word) for word in command))
    digest = hashlib.sha256("\0".join((*words, os.environ.get("NVCC_CCBIN", ""))).encode()).hexdigest()
    entry = project.host.kept("nvcc", digest[:32], make)
    lent.mkdir(exist_ok=True)
    if file:
        shutil.copyfile(entry / file, lent / file)
    facts = json.loads((entry / "facts.json").read_text())
    return Output(source, lent / file, facts["log"], Path(facts["folder"]))


def _without(folders: Sequence[str], text: str) -> str:
    for folder in folders:
        text = text.replace(folder, "")
    return text
