"""The plan: what host code asked for, for one shape, as a document.

    buffers[].bytes         memory; the first ones are those of `contract.Arguments`
    constants[].{blob,bytes}                      bytes that host code knew
    kernels[].{name,code,shared_bytes}            `code` names a blob with PTX, and says how Triton calls ptxas for it
    steps[]                 in order: `constant`, `copy`, `fill`, `launch`, each with the submission's file and line
    notes[]                 what autotune chose and tried, for the build's log

Each step and kernel has its line in the replayer's language, which `replay/replay.cc` explains. A package holds such
lines for each shape; `grader run` and autotune send single ones.

A place is [buffer, offset in bytes]. A kernel's argument is a place, or the bytes of a value. A blob is a file, named
after its SHA-256. A submission's process writes plans, so everything in one is bounded here and nothing is believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MAX_PLAN_BYTES = 32 << 20
MAX_STEPS, MAX_BUFFERS, MAX_KERNELS, MAX_CONSTANTS, MAX_ARGUMENTS = 200_000, 20_000, 256, 4096, 128
MAX_CONSTANT_BYTES = 16 << 20
"""Of all constants of one plan: a table of sines for 32,768 positions and 64 columns takes half of it."""
MAX_KERNEL_BYTES = 4 << 20

Count = Annotated[int, Field(ge=0, lt=1 << 47)]
Number = Annotated[int, Field(ge=0, lt=1 << 31)]
Place = tuple[Annotated[int, Field(ge=-1, lt=MAX_BUFFERS)], Count]
"""(buffer, offset); (-1, 0) is a null pointer."""
Pattern = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{2}([0-9a-f]{2}([0-9a-f]{4}([0-9a-f]{8})?)?)?$", max_length=16)
]
"""1, 2, 4 or 8 bytes, hexadecimal, in the order of memory."""
Argument = Place | Pattern
BlobName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$", max_length=64)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_$.]+$", max_length=1000)]
File = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f]*$", max_length=250)]
Grid = tuple[Number, Annotated[int, Field(ge=0, lt=1 << 16)], Annotated[int, Field(ge=0, lt=1 << 16)]]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Buffer(_Model):
    bytes: Count


PtxasWord = Literal["ptxas", "ptxas-blackwell", "-lineinfo", "--fmad=false", "--regAllocOptLevel=2"]


class Code(_Model):
    """The PTX of a kernel, and which of Triton's compilers makes machine code of it, with which options; none for the
    emulator. No machine code of a submission is loaded: it could launch kernels that no trace shows."""

    ptx: BlobName
    ptxas: Annotated[tuple[PtxasWord, ...], Field(max_length=4)] = ()


class Kernel(_Model):
    name: Name
    code: Code
    shared_bytes: Annotated[int, Field(ge=0, lt=1 << 20)]

    def command(self, binary: str) -> str:
        """`binary`: the number of a blob, or - LENGTH if the bytes follow."""
        return f"kernel {self.name} {self.shared_bytes} {binary}\n"


class Blob(_Model):
    """The bytes of a constant: the name and the size of a file."""

    name: BlobName
    bytes: Annotated[int, Field(ge=0, le=MAX_CONSTANT_BYTES)]


class _Step(_Model):
    file: File = ""
    line: Number = 0


class Constant(_Step):
    """Write a constant."""

    do: Literal["constant"] = "constant"
    to: Place
    constant: Number

    def command(self, constant: str) -> str:
        """`constant`: the number of a blob, or - LENGTH if the bytes follow."""
        return f"constant {self.to[0]} {self.to[1]} {constant}\n"


class Fill(_Step):
    """Write `pattern` `count` times."""

    do: Literal["fill"] = "fill"
    to: Place
    pattern: Pattern
    count: Count

    def command(self, constant: str) -> str:
        return f"fill {self.to[0]} {self.to[1]} {len(self.pattern) // 2} {self.pattern} {self.count}\n"


class Copy(_Step):
    do: Literal["copy"] = "copy"
    to: Place
    source: Place
    bytes: Count

    def command(self, constant: str) -> str:
        return f"copy {self.to[0]} {self.to[1]} {self.source[0]} {self.source[1]} {self.bytes}\n"


class Launch(_Step):
    do: Literal["launch"] = "launch"
    kernel: Number
    grid: Grid
    block: tuple[Annotated[int, Field(ge=1, le=1024)], Literal[1], Literal[1]]
    shared_bytes: Annotated[int, Field(ge=0, lt=1 << 20)]
    cluster: Annotated[int, Field(ge=1, le=16)] = 1
    cooperative: bool = False
    stream: Literal[0] = 0
    arguments: Annotated[tuple[Argument, ...], Field(max_length=MAX_ARGUMENTS)]

    def command(self, constant: str) -> str:
        numbers = (self.kernel, *self.grid, self.block[0], self.shared_bytes, self.cluster, int(self.cooperative))
        given = (f"v {len(a) // 2} {a}" if isinstance(a, str) else f"p {a[0]} {a[1]}" for a in self.arguments)
        return f"launch {' '.join(map(str, numbers))} {len(self.arguments)} {' '.join(given)}\n"


Step = Annotated[Constant | Fill | Copy | Launch, Field(discriminator="do")]
MAX_NOTE = 1000
Note = Annotated[str, StringConstraints(max_length=MAX_NOTE)]


class Plan(_Model):
    buffers: Annotated[tuple[Buffer, ...], Field(max_length=MAX_BUFFERS)]
    constants: Annotated[tuple[Blob, ...], Field(max_length=MAX_CONSTANTS)]
    kernels: Annotated[tuple[Kernel, ...], Field(max_length=MAX_KERNELS)]
    steps: Annotated[tuple[Step, ...], Field(max_length=MAX_STEPS)]
    notes: Annotated[tuple[Note, ...], Field(max_length=MAX_KERNELS)] = ()


def place_line(file: str, line: int) -> str:
    """The replayer's command for the submission's line that the following commands belong to."""
    return f"at {line} {file or '-'}\n"


def blob_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def problem_of(plan: Plan, buffers: tuple[int, ...]) -> str:
    """The reason why a plan cannot be replayed, as a phrase; '' if it can. `buffers` has the size of each buffer that
    the file's tensors are in."""
    if tuple(buffer.bytes for buffer in plan.buffers[: len(buffers)]) != buffers:
        return "its first buffers are not those of the arguments"
    if (size := sum(blob.bytes for blob in plan.constants)) > MAX_CONSTANT_BYTES:
        return f"its constants take {size:,} bytes, and {MAX_CONSTANT_BYTES:,} are allowed"
    return next((problem for step in plan.steps if (problem := _problem_of_step(plan, step))), "")


def _problem_of_step(plan: Plan, step: Step) -> str:
    if isinstance(step, Launch) and step.kernel >= len(plan.kernels):
        return f"line {step.line} launches a kernel that is not in it"
    if isinstance(step, Constant) and step.constant >= len(plan.constants):
        return f"line {step.line} writes a constant that is not in it"
    for (buffer, offset), size in touched(step, plan.constants):
        if buffer >= len(plan.buffers) or offset + size > (plan.buffers[buffer].bytes if buffer >= 0 else 0):
            return f"line {step.line} uses memory outside of its buffers"
    return ""


def touched(step: Step, constants: Sequence[Blob]) -> Iterator[tuple[Place, int]]:
    """The places that a step names, and how many bytes it reads or writes there; 0 if only a kernel knows."""
    match step:
        case Constant():
            yield step.to, constants[step.constant].bytes
        case Fill():
            yield step.to, len(step.pattern) // 2 * step.count
        case Copy():
            yield from ((step.to, step.bytes), (step.source, step.bytes))
        case Launch():
            yield from ((each, 0) for each in step.arguments if not isinstance(each, str))
