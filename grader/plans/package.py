"""The package: one file with scripts for all shapes, which the replayer runs (`replay/replay.cc` has its format).

The grader writes it, from plans that it has checked in the room.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.base.workers import cores
from grader.plans.contract import Arguments
from grader.plans.plan import MAX_KERNELS, MAX_PLAN_BYTES, BlobName, Configuration, Constant, Plan, problem_of
from grader.plans.script import kernel_line, place_line, step_line
from grader.sandbox.room import Sentence, confined

_BLOB = re.compile(r"@([0-9a-f]{64})")


class Script(BaseModel):
    """The script of a plan, in which @NAME stands for a blob's place, or the reason why there is none. `kernels` names
    the blobs that are kernels."""

    model_config = ConfigDict(frozen=True)
    problem: Sentence = ""
    text: Annotated[str, Field(max_length=2 * MAX_PLAN_BYTES)] = ""
    kernels: Annotated[tuple[BlobName, ...], Field(max_length=MAX_KERNELS)] = ()
    configurations: Annotated[tuple[Configuration, ...], Field(max_length=MAX_KERNELS)] = ()


@confined(cpu_s=30, memory_bytes=2 << 30, answer_bytes=2 * MAX_PLAN_BYTES)
def script_of(plan: bytes, arguments: Arguments, blobs: Mapping[str, int]) -> Script:
    """The script of a plan in JSON, as a submission's process left it. `blobs` has the sizes of the blobs."""
    try:
        read = Plan.model_validate_json(plan)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return Script(problem=f"its plan is none: {place}: {first['msg']}"[:900])
    if problem := problem_of(read, blobs, tuple(part.size_bytes for part in arguments.buffers)):
        return Script(problem=problem)
    lines = [kernel_line(each.name, each.shared_bytes, f"@{each.binary}") for each in read.kernels]
    at = "", 0
    lines += [f"buffer {each.bytes}\n" for each in read.buffers]
    for number, part in enumerate(arguments.buffers):
        lines.append(f"input {number} {part.first}\n" if part.file == "input" else f"poison {number}\n")
    for step in read.steps:
        if (step.file, step.line) != at:
            at = step.file, step.line
            lines.append(place_line(*at))
        lines.append(step_line(step, f"@{read.constants[step.constant]}" if isinstance(step, Constant) else ""))
    lines += [f"output {number}\n" for number, part in enumerate(arguments.buffers) if part.file == "output"]
    kernels = tuple(dict.fromkeys(each.binary for each in read.kernels))
    return Script(text="".join(lines), kernels=kernels, configurations=read.configurations)


def failing(reason: str) -> str:
    """The script for a shape for which host code failed."""
    return f"fail {' '.join(reason.split())[:2000]}\n"


def package(scripts: Mapping[bytes, str], header_bytes: int, blobs: Mapping[str, bytes]) -> bytes:
    """The package with a script for each header, and the blobs that they name."""
    used = dict.fromkeys(name for text in scripts.values() for name in _BLOB.findall(text))
    places, end = dict[str, str](), 0
    for name in used:
        places[name] = f"{end} {len(blobs[name])}"
        end += len(blobs[name])
    sections = (f"shape {header.hex()}\n{text}end\n" for header, text in scripts.items())
    text = _BLOB.sub(lambda found: places[found[1]], "".join(sections)).encode()
    return b"grader-plans 1 %d %d\n" % (header_bytes, len(text)) + text + b"".join(blobs[name] for name in used)


def with_kernels(
    scripts: Sequence[Script], blobs: Mapping[str, bytes], loadable: Callable[[bytes], bytes]
) -> dict[str, bytes]:
    """The blobs, with what the replayer loads in the place of each kernel that Triton compiled."""
    names = dict.fromkeys(name for script in scripts for name in script.kernels)
    with ThreadPoolExecutor(cores()) as pool:
        return {**blobs, **dict(zip(names, pool.map(lambda name: loadable(blobs[name]), names), strict=True))}


def is_blob(name: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == name
