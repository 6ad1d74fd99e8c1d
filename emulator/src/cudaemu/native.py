"""Compile translated kernels with the host's C compiler, and cache the object code that builds can share.

Below `native/`, the cache holds the runtime (as an object and as a shared library) and the object code of templates.
Both depend only on the emulator's files, the compiler and, for a template, its text, never on a program's names or
data. Both are compiled in a folder of the cache, which no other compiler sees, and builds get copies.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from cudaemu.errors import EmulatorFault, MachineFault
from cudaemu.host import Host
from cudaemu.isa import LANGUAGE, RUNTIME, host_compiler, instruction_set
from cudaemu.translated import Template

RUNTIME_FLAGS = (*LANGUAGE, "-O2", "-g1", "-fPIC", "-Wall", "-Wextra")
TEMPLATE_LEVEL = "-O2"
TEMPLATE_BATCH_BYTES = 20_000  # C text of templates for each compiler process, at least
# Without warnings, because generated C declares labels and variables that some kernels do not use.
KERNEL_FLAGS = (*LANGUAGE, "-fno-tree-vectorize", "-fno-semantic-interposition", "-fPIC", "-w")


def compile_c(text: str, path: Path, level: str, host: Host, folder: Path) -> Path:
    """Write generated C to `path` and compile it to an object in `folder`, where the compiler runs and may write. If
    the compiler crashes, as gcc 12 does in one of its optimisations without AVX, compile again at a lower level."""
    with path.open("x", encoding="utf-8") as file:  # never through a link that a compiler put there
        file.write(text)
    out = folder / f"{path.stem}.o"
    for optimisation in dict.fromkeys((level, "-O1", "-O0")):
        command = [host_compiler(), *KERNEL_FLAGS, optimisation, *instruction_set().flags, f"-I{RUNTIME}"]
        done = host.run([*command, "-c", str(path), "-o", str(out)], folder)
        if done.exit_code == 0:
            return out
        if "internal compiler error" not in done.output:
            break
    raise EmulatorFault(
        f"The emulator translated a kernel to C that does not compile. This is the emulator's fault, not the program's "
        f"({path.name}):\n{done.output[:4000]}"
    )


# ---- the cache ----------------------------------------------------------------------------------------------------


def runtime_object(include: Path, host: Host, work: Path) -> Path:
    """Return the runtime as one object, compiled once per version and machine."""
    return _lend(compiled_runtime(include, host) / "runtime.o", work, "runtime")


def compiled_runtime(include: Path, host: Host) -> Path:
    """The cache's folder with the runtime as one object, runtime.o, and the compiler's warnings, warnings.txt."""

    def make(folder: Path) -> Path:
        made = folder / "made"
        made.mkdir()
        largest_first = sorted(RUNTIME.glob("*.c"), key=lambda source: -source.stat().st_size)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            parts = pool.map(lambda source: _compile_runtime_file(source, include, host, folder), largest_first)
            objects, warnings = zip(*sorted(parts), strict=True)
        done = host.run([host_compiler(), "-r", "-nostdlib", *objects, "-o", str(made / "runtime.o")], folder)
        if done.exit_code != 0:
            raise MachineFault(f"The emulator's runtime does not link here:\n{done.output}")
        (made / "warnings.txt").write_text("".join(warnings))
        return made

    return host.kept("native", f"emulator-runtime-{_runtime_key(include)}", make)


def runtime_library(include: Path, host: Host) -> Path:
    """Return the runtime as a shared library in the cache, for the replayer of plans to load."""

    def make(folder: Path) -> Path:
        whole, library = runtime_object(include, host, folder), folder / "runtime.so"
        # host_place.c finds calls of C++ between these symbols; the replayer reports its lines itself (emu_called_from)
        lines = "-Wl,--defsym=__executable_start=0,--defsym=etext=0"
        done = host.run(
            [host_compiler("c++"), "-shared", lines, str(whole), "-o", str(library), "-lpthread", "-lm"], folder
        )
        if done.exit_code != 0:
            raise MachineFault(f"The emulator's runtime does not link as a library here:\n{done.output}")
        return library

    return host.kept("native", f"emulator-library-{_runtime_key(include)}.so", make)


def _runtime_key(include: Path) -> str:
    digest = hashlib.sha256(instruction_set().identity.encode())
    for path in sorted(RUNTIME.iterdir()):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    digest.update(" ".join((*RUNTIME_FLAGS, *instruction_set().flags, str(include.resolve()))).encode())
    return digest.hexdigest()[:24]


def _compile_runtime_file(source: Path, include: Path, host: Host, folder: Path) -> tuple[str, str]:
    """Compile a file of the runtime, and return (object, warnings)."""
    part = folder / f"{source.stem}.o"
    command = [
        host_compiler(), *RUNTIME_FLAGS, *instruction_set().flags, f"-I{RUNTIME}", "-isystem", str(include),
        "-c", str(source), "-o", str(part),
    ]  # fmt: skip
    done = host.run(command, folder)
    if done.exit_code != 0:
        raise MachineFault(f"The emulator's runtime does not compile here ({source.name}):\n{done.output}")
    return str(part), done.output


def template_objects(
    templates: Sequence[Template], header: str, host: Host, work: Path
) -> tuple[list[Path], list[Callable[[], Path]]]:
    """Return cached objects that hold some of these templates, and functions that compile the others, at most one per
    core. An object may hold templates that were not requested and that another object holds too, so all templates are
    weak symbols.

    An entry of the cache is a folder with the object and names.json, the names of its templates. An entry that
    cannot be read is made again.
    """
    entries, missing = f"templates-{_template_key(header)}-", {t.name: t for t in templates}
    objects: list[Path] = []
    for entry in host.entries("native", entries):
        try:
            names = missing.keys() & json.loads((entry / "names.json").read_text())
            if names:
                objects.append(_lend(entry / "templates.o", work, entry.name))
                missing = {name: t for name, t in missing.items() if name not in names}
                os.utime(entry)
        except (OSError, ValueError):
            shutil.rmtree(entry, ignore_errors=True)  # one of its files is gone or damaged
    batches = max(1, min(os.cpu_count() or 1, sum(len(t.text) for t in missing.values()) // TEMPLATE_BATCH_BYTES))
    by_size = sorted(missing.values(), key=lambda t: -len(t.text))
    shares = [by_size[i::batches] for i in range(batches)] if missing else []
    return objects, [partial(_compile_templates, share, header, entries, host, work) for share in shares]


def _template_key(header: str) -> str:
    """A hash over everything that a template's object code depends on, except its text."""
    digest = hashlib.sha256(repr((instruction_set(), KERNEL_FLAGS, TEMPLATE_LEVEL, header)).encode())
    for path in sorted(RUNTIME.iterdir()):
        if path.suffix in (".h", ".inc"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:24]


def _compile_templates(templates: Sequence[Template], header: str, entries: str, host: Host, work: Path) -> Path:
    text = header + "".join(t.text for t in templates)

    def make(folder: Path) -> Path:
        made = folder / "made"
        made.mkdir()
        if not host.claim(compile_c(text, folder / "templates.c", TEMPLATE_LEVEL, host, folder), made / "templates.o"):
            raise EmulatorFault("gcc wrote no object file for the templates.")
        (made / "names.json").write_text(json.dumps([t.name for t in templates]))
        return made

    entry = host.kept("native", f"{entries}{hashlib.sha256(text.encode()).hexdigest()[:24]}", make)
    return _lend(entry / "templates.o", work, entry.name)


def _lend(kept: Path, work: Path, name: str) -> Path:
    """Copy a cached file to `work`, where the linker can read it but not write it."""
    lent = work / f"kept-{name}.o"
    shutil.copyfile(kept, lent)
    return lent
