"""Compiles the PTX of one kernel to a shared library, for a process that has loaded the runtime as a library."""

from __future__ import annotations

import os
from pathlib import Path

from cudaemu.build import CompileFailed, Unsupported, carried_ptx, tables_text
from cudaemu.errors import EmulatorFault, Unreadable
from cudaemu.extras import Extras
from cudaemu.host import Host
from cudaemu.isa import host_compiler, instruction_set
from cudaemu.native import compile_c, template_objects
from cudaemu.nvcc import read_registers
from cudaemu.translated import MissingFeature
from cudaemu.translation import MAX_PTX_BYTES, translate

PREFIX = "m0"
"""The module's table in the library is called m0_module."""


def compile_kernel(
    ptx: str,
    *,
    target: str,
    ptxas: str,
    extras: Extras,
    work: Path,
    written: Path,
    host: Host,
    below: str,
) -> Path:
    """Compile the kernel in `ptx` for `target` (sm_80), and return its shared library. The compilers run in the empty
    folder `work`; files for them are written to the empty folder `written`. Findings show the names of source files
    below the folder `below` relative to it. Raises CompileFailed if ptxas refuses the kernel, Unsupported if the
    emulator does."""
    if len(ptx) > MAX_PTX_BYTES:
        what = f"a kernel with more than {MAX_PTX_BYTES >> 20} MB of PTX"
        raise Unsupported([MissingFeature(what, None, None, "use smaller blocks")])
    source = written / "kernel.ptx"
    source.write_text(ptx, encoding="utf-8")
    done = host.run([ptxas, "-v", f"-arch={target}", str(source), "-o", os.devnull], work)
    if done.exit_code != 0:
        raise CompileFailed(done.output)
    registers = host.read(read_registers, done.output)
    with source.open("rb") as file:
        try:
            translation = host.read(
                translate,
                [file],
                prefix=PREFIX,
                below=below,
                lanes=instruction_set().lanes,
                extras=Extras(watch=extras.watch, count=extras.count),
            )
        except Unreadable as error:
            missing = MissingFeature(f"this kernel's PTX ({error})", None, None, "run it on a GPU")
            raise Unsupported([missing]) from error
    if translation.findings:
        raise Unsupported(translation.findings)
    objects, compilations = template_objects(translation.templates, translation.header, host, written)
    objects += [make() for make in compilations]
    for c in translation.files:
        objects.append(compile_c(c.text, written / f"{c.name}.c", c.level, host, work))
    tables = tables_text(translation, PREFIX, registers, per_thread=False)
    tables += carried_ptx([source]) if extras.count else ""
    objects.append(compile_c(tables, written / f"{PREFIX}_tables.c", "-O0", host, work))
    made = work / "kernel.so"
    done = host.run([host_compiler(), "-shared", *map(str, dict.fromkeys(objects)), "-o", str(made)], work)
    if done.exit_code != 0:
        raise EmulatorFault(f"The emulator's code for a kernel does not link:\n{done.output[:4000]}")
    return made
