"""The package: one file with scripts for all shapes, which the replayer runs (`replay/replay.cc` has its format).

The grader writes it, from plans that it has checked in the room. A script names blobs by their numbers in a list that
stands before it, so a submission's words stay words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.plans.contract import Arguments
from grader.plans.plan import (
    MAX_CONSTANTS,
    MAX_KERNELS,
    MAX_PLAN_BYTES,
    Blob,
    Code,
    Constant,
    Note,
    Plan,
    place_line,
    problem_of,
)
from grader.sandbox.room import Sentence, confined


class Script(BaseModel):
    """The script of a plan, in which blobs are numbered: the `constants`, then the `kernels`; or the problem with the
    plan."""

    model_config = ConfigDict(frozen=True)
    problem: Sentence = ""
    text: Annotated[str, Field(max_length=2 * MAX_PLAN_BYTES)] = ""
    constants: Annotated[tuple[Blob, ...], Field(max_length=MAX_CONSTANTS)] = ()
    kernels: Annotated[tuple[Code, ...], Field(max_length=MAX_KERNELS)] = ()
    notes: Annotated[tuple[Note, ...], Field(max_length=MAX_KERNELS)] = ()


@confined(cpu_s=30, memory_bytes=2 << 30, answer_bytes=2 * MAX_PLAN_BYTES)
def script_of(plan: bytes, arguments: Arguments) -> Script:
    """The script of a plan in JSON, as a submission's process left it."""
    try:
        read = Plan.model_validate_json(plan)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return Script(problem=f"its plan is none: {place}: {first['msg']}"[:900])
    if problem := problem_of(read, tuple(part.size_bytes for part in arguments.buffers)):
        return Script(problem=problem)
    kernels = {each.code: len(read.constants) + number for number, each in enumerate(read.kernels)}
    lines = [each.command(str(kernels[each.code])) for each in read.kernels]
    at = "", 0
    for number, part in enumerate(arguments.buffers):
        names = "/".join(tensor.name for tensor in arguments.tensors if tensor.buffer == number)
        lines.append(f"argument {part.size_bytes} {names}\n")
    lines += [f"buffer {each.bytes}\n" for each in read.buffers[len(arguments.buffers) :]]
    for number, part in enumerate(arguments.buffers):
        lines.append(f"input {number} {part.first}\n" if part.file == "input" else f"poison {number}\n")
    for step in read.steps:
        if (step.file, step.line) != at:
            at = step.file, step.line
            lines.append(place_line(*at))
        lines.append(step.command(str(step.constant) if isinstance(step, Constant) else ""))
    lines += [f"output {number}\n" for number, part in enumerate(arguments.buffers) if part.file == "output"]
    return Script(
        text="".join(lines),
        constants=read.constants,
        kernels=tuple(each.code for each in read.kernels),
        notes=read.notes,
    )


def failing(reason: str) -> Script:
    """The script for a shape for which host code failed. A null byte would end the replayer's texts."""
    words = reason.replace("\0", " ").split()
    return Script(text=f"fail {' '.join(words)[:2000]}\n")


def package(
    scripts: Mapping[bytes, Script], header_bytes: int, constants: Mapping[str, bytes], kernels: Mapping[Code, bytes]
) -> bytes:
    """The package with a script for each header; `constants` and `kernels` have the bytes of what they name."""
    places = dict[bytes, str]()
    sections, end = list[str](), 0
    for header, script in scripts.items():
        sections.append(f"shape {header.hex()}\n")
        for blob in (*(constants[each.name] for each in script.constants), *map(kernels.__getitem__, script.kernels)):
            if blob not in places:
                places[blob] = f"blob {end} {len(blob)}\n"
                end += len(blob)
            sections.append(places[blob])
        sections.append(f"{script.text}end\n")
    text = "".join(sections).encode()
    return b"grader-plans 2 %d %d\n" % (header_bytes, len(text)) + text + b"".join(places)
