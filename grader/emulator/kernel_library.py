"""Compiles the PTX of one kernel to a shared library, for a process that has loaded the runtime as a library."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.base.errors import GraderFault
from grader.base.process import Runner
from grader.emulator import WATCHING
from grader.emulator.build import MAX_PTX_BYTES, CompileFailed, Unsupported, module_sources
from grader.emulator.isa import host_compiler, instruction_set
from grader.emulator.native import compile_c, template_objects
from grader.emulator.nvcc import read_registers
from grader.emulator.ptx import PtxSyntaxError, parse
from grader.emulator.translate import Finding, translate_module

COUNT = "count"
_LOC = re.compile(r"\s*\.loc\b")
"""Triton writes loads and stores as inline assembly. LLVM adds a .loc to each line of the assembly, with line numbers
that count up. `compile_kernel` removes them, because the .loc before the assembly is correct for all of it."""
PREFIX = "m0"
"""The module's table in the library is called m0_module."""


def _without_lines_in_assembly(ptx: str) -> Iterator[str]:
    """The lines of `ptx` without `.loc` in inline assembly, where Triton 3.9 counts the lines of the assembly."""
    inside = False
    for line in ptx.splitlines(keepends=True):
        if "// begin inline asm" in line or "// end inline asm" in line:
            inside = "// begin inline asm" in line
        if not (inside and _LOC.match(line)):
            yield line


def compile_kernel(
    ptx: str,
    *,
    target: str,
    ptxas: str,
    checks: frozenset[str],
    work: Path,
    written: Path,
    run: Runner,
    own_name: Callable[[str], str],
) -> Path:
    """Compile the kernel in `ptx` for `target` (sm_80), and return its shared library. The compilers run in the empty
    folder `work`; files for them are written to the empty folder `written`. `checks` are the sanitizers, and COUNT for
    counters; `own_name` maps a source file in the PTX to the name that findings show. Raises CompileFailed if ptxas
    refuses the kernel, Unsupported if the emulator does."""
    if len(ptx) > MAX_PTX_BYTES:
        what = f"a kernel with more than {MAX_PTX_BYTES >> 20} MB of PTX"
        raise Unsupported([Finding(what, None, None, "use smaller blocks")])
    source = written / "kernel.ptx"
    source.write_text(ptx, encoding="utf-8")
    done = run([ptxas, "-v", f"-arch={target}", str(source), "-o", os.devnull], work)
    if done.exit_code != 0:
        raise CompileFailed(done.output)
    registers = read_registers(done.output)
    try:
        module = parse("".join(_without_lines_in_assembly(ptx)))
    except PtxSyntaxError as error:
        raise Unsupported([Finding(f"this kernel's PTX ({error})", None, None, "run it on a GPU")]) from error
    module.files.update({number: own_name(file) for number, file in module.files.items()})
    translation, findings = translate_module(
        module,
        prefix=PREFIX,
        lanes=instruction_set().lanes,
        registers=lambda: registers,
        watch=bool(checks & WATCHING),
        count=COUNT in checks,
    )
    if findings:
        raise Unsupported(findings)
    objects, compilations = template_objects(translation.templates, translation.header, run, written)
    objects += [make() for make in compilations]
    for text, name, level in module_sources(translation, PREFIX, "", False):
        objects.append(compile_c(text, written / f"{name}.c", level, run, work))
    made = work / "kernel.so"
    done = run([host_compiler(), "-shared", *map(str, dict.fromkeys(objects)), "-o", str(made)], work)
    if done.exit_code != 0:
        raise GraderFault(f"The emulator's code for a kernel does not link:\n{done.output[:4000]}")
    return made
