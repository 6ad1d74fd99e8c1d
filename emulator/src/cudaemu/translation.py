"""From PTX to C: readers, since whoever wrote the program decides what its PTX, objects and messages contain. What
parses them is imported inside readers only.

MAX_PTX_BYTES bounds the memory: to parse a byte of PTX takes about 20, to translate it about as many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Annotated

from pydantic import Field

from cudaemu.errors import Unreadable, shortened
from cudaemu.extras import NONE, Extras
from cudaemu.host import confined
from cudaemu.lacking import lacking_function
from cudaemu.translated import (
    MAX_C_BYTES,
    MAX_FINDINGS,
    MAX_OBJECT_NAMES,
    CFile,
    MissingFeature,
    ObjectNames,
    Translated,
)

MAX_PTX_BYTES = 32 << 20
"""Five lines of source can become gigabytes of PTX, because PTX lists an array's initial values one by one."""
FILES_PER_UNIT = 10_000  # PTX file numbers reserved for each unit, so that the numbers of linked units do not clash
PART_BYTES = 120_000  # a C file of this size takes no further parts
_LOC = re.compile(r"\s*\.loc\b")


@confined(cpu_s=60, memory_bytes=6 << 30, answer_bytes=MAX_C_BYTES)
def translate(
    units: Sequence[IO[bytes]],
    *,
    prefix: str,
    below: str,
    lanes: int,
    extras: Extras = NONE,
) -> Translated:
    """Translate the PTX of `units`, linked to one module if there are several. `below` is the folder of the project, to
    which the names of source files are made relative. Raises Unreadable for PTX that cannot be parsed."""
    import gc

    from cudaemu.ptx import PtxSyntaxError, link_modules, parse
    from cudaemu.translate import leave_out, translate_module

    gc.disable()  # translation makes millions of objects that live to the end; the collector takes a fifth of the time
    modules = []
    for number, unit in enumerate(units):
        text = "".join(_without_lines_in_assembly(unit.read(MAX_PTX_BYTES).decode(errors="replace")))
        try:
            module = parse(text, first_file=number * FILES_PER_UNIT)
        except PtxSyntaxError as error:
            raise Unreadable(str(error)) from None
        for file, name in module.files.items():
            module.files[file] = name.rpartition(f"{below}/")[2]
        modules.append(module)
    module = modules[0] if len(modules) == 1 else link_modules(modules)
    leave_out(module, extras.launched)
    made, findings = translate_module(module, prefix=prefix, lanes=lanes, extras=extras)
    found = [
        MissingFeature(shortened(each.what), each.file and shortened(each.file), each.line, each.advice)
        for each in findings[:MAX_FINDINGS]
    ]
    files = () if findings else tuple(_files(made.header + made.common, made.parts, prefix))
    return Translated(made.header, files, made.tables, made.kernels, made.templates, tuple(found))


def _files(before: str, parts: Sequence[str], prefix: str) -> Iterator[CFile]:
    """A large part has a file of its own, small parts share one, and the largest come first, to compile in parallel for
    as long as possible."""
    batches: list[list[str]] = [[]]
    for part in sorted(parts, key=len, reverse=True):
        if sum(map(len, batches[-1])) > PART_BYTES:
            batches.append([])
        batches[-1].append(part)
    for number, batch in enumerate(batches):
        # -Og compiles in a third of the time of -O2, and the kernels are at most 5 % slower.
        yield CFile(f"{prefix}_{number}", before + "\n".join(batch), "-Og")


def _without_lines_in_assembly(ptx: str) -> Iterator[str]:
    """The lines of `ptx` without `.loc` in inline assembly, where nvcc writes none. Triton writes loads and stores as
    inline assembly, and LLVM adds a .loc to each of its lines, with line numbers that count up; the .loc before the
    assembly is right for all of it."""
    inside = False
    for line in ptx.splitlines(keepends=True):
        if "// begin inline asm" in line or "// end inline asm" in line:
            inside = "// begin inline asm" in line
        if not (inside and _LOC.match(line)):
            yield line


_PER_THREAD = re.compile(rb"(?<![A-Za-z0-9_])(?:__)?cuda[A-Za-z0-9]{1,80}_pt[sd][zs](?![A-Za-z0-9_])")
_LINKED = re.compile(rb"(?<![A-Za-z0-9_])__cudaRegisterLinkedBinary_[A-Za-z0-9_]{1,1000}")


@confined(cpu_s=20, memory_bytes=2 << 30, answer_bytes=4 << 20)
def read_object(file: IO[bytes]) -> ObjectNames:
    """Find the names in an object file that decide how it is linked."""
    import mmap

    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        per_thread, linked = (
            {name.decode() for name in pattern.findall(content)} for pattern in (_PER_THREAD, _LINKED)
        )
    if max(len(per_thread), len(linked)) > MAX_OBJECT_NAMES:
        raise Unreadable(f"names more than {MAX_OBJECT_NAMES:,} functions of CUDA")
    return ObjectNames(tuple(sorted(per_thread)), tuple(sorted(linked)))


_UNDEFINED = re.compile(r"undefined reference to [`'](?:__)?((?:cuda|cu)[A-Z]\w{0,100})'")


@confined(cpu_s=10)
def missing_functions(log: str) -> Annotated[list[MissingFeature], Field(max_length=MAX_FINDINGS)]:
    """What the emulator lacks, judged by the functions of CUDA that the linker did not find."""
    lacking = map(lacking_function, sorted(set(_UNDEFINED.findall(log)))[:MAX_FINDINGS])
    return [MissingFeature(found.what, None, None, found.advice) for found in lacking]
