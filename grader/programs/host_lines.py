"""Lines of host code in findings. A graded program may start no process, so the emulator's runtime cannot run
addr2line: it reports where in the program the calls were (runtime/host_place.c), and the grader looks the lines up.

addr2line runs confined, as compilers do, since the program wrote the addresses and the submission's assembly the line
table. Its answer, at most 1 MB, is read in the room.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from os.path import normpath
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cudaemu.isa import binutil
from grader import sandbox
from grader.base.names import handed_in_name
from grader.findings import Finding, Place
from grader.sandbox.room import Unreadable, confined
from grader.sandbox.scratch import scratch_folder

_Address = Annotated[int, Field(ge=0, lt=2**64)]
_LIMIT_S = 3.0
_MAX_ADDRESSES = 1000
_KINDS = ("host_at", "allocated_at", "other_at", "last_at")
_ADDRESS = re.compile(r"0x[0-9a-f]{1,16}")
_LINE = re.compile(r"(.+):([1-9]\d{0,6})(?: \(discriminator \d+\))?")
_NOT_THE_STUDENTS = re.compile(r"/usr/|\?|.*(?:cuda_runtime|cudaemu/runtime/)")
"""cudaMalloc<float> is a function in a header, and so is printf if g++ fortifies the C library."""


def with_lines(findings: Sequence[Finding], program: Path) -> tuple[Finding, ...]:
    """The findings of a run of `program`, with lines in place of addresses, as far as the compiler noted any."""
    wanted = list(dict.fromkeys(each for found in findings for kind in _KINDS for each in _addresses(found, kind)))
    lines = _look_up(wanted[:_MAX_ADDRESSES], program) if wanted else {}
    return tuple(_placed(found, lines) for found in findings)


def _addresses(found: Finding, kind: str) -> tuple[int, ...]:
    value = found.values.get(kind, ())
    return tuple(each for each in value if isinstance(each, int) and each >= 0) if isinstance(value, tuple) else ()


def _look_up(addresses: Sequence[int], program: Path) -> dict[int, Place]:
    """For each address its innermost line in the student's code: addr2line prints the address, then lines, the
    innermost first."""
    command = [binutil("addr2line"), "-a", "-i", "-e", str(program), *map(hex, addresses)]
    with scratch_folder("lines") as folder:
        answer = sandbox.runner(_LIMIT_S, readable=(program,))(command, folder).output
    try:
        return dict(read_lines(answer))
    except Unreadable:
        return {}


@confined(cpu_s=5)
def read_lines(answer: str) -> Annotated[list[tuple[_Address, Place]], Field(max_length=_MAX_ADDRESSES)]:
    """The place of each address in addr2line's answer that has one."""
    lines: dict[int, Place] = {}
    address = -1
    for text in answer.splitlines():
        if _ADDRESS.fullmatch(text):
            address = int(text, 16)
        elif (line := _LINE.fullmatch(text)) and address not in lines and not _NOT_THE_STUDENTS.match(text):
            lines[address] = Place(file=handed_in_name(normpath(line[1])), line=int(line[2]))
    return list(lines.items())


def _placed(found: Finding, lines: Mapping[int, Place]) -> Finding:
    addresses = {kind: _addresses(found, kind) for kind in _KINDS}
    here, allocated, other, last = (next((lines[a] for a in addresses[k] if a in lines), None) for k in _KINDS)
    values = {name: value for name, value in found.values.items() if name not in _KINDS}
    words = found.words
    if last and addresses["host_at"] and addresses["host_at"][0] not in lines:  # inside the runtime, which it called
        here, words = last, {**words, "last": "call"}
    if allocated:
        values.pop("serial", None)  # a person counts allocations only if their line is not known
    own = {"file": here.file, "line": here.line} if here else {}
    others = {"allocated": allocated or found.allocated, "other": other or found.other}
    return found.model_copy(update={"values": values, "words": words, **own, **others})
