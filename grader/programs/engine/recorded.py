"""What a recorder's process left: plans, blobs and messages, read as a submission's files, within one budget."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cudaemu.process import Stopped
from grader.base.workers import cores
from grader.plans.contract import Arguments
from grader.plans.package import Script, script_of
from grader.plans.plan import MAX_KERNEL_BYTES, MAX_PLAN_BYTES, Code
from grader.plans.refusals import Refused
from grader.sandbox import quarantine
from grader.sandbox.budget import Budget, draw_from
from grader.sandbox.room import Unreadable

MAX_KEPT_BYTES = 192 << 20
_OTHER_BYTES = "a blob of its plan has other bytes than the plan says"


def message_of(folder: Path, name: str) -> str:
    """The recorder's message in a file; '' if there is none."""
    try:
        return quarantine.read_text(folder, name, 1 << 20)[:20_000].strip()
    except quarantine.Refused:
        return ""


def read_script(out: Path, number: int, arguments: Arguments, budget: Budget) -> tuple[Script, str | None]:
    """The script of a shape and ''; or what host code reported, None if it left nothing."""
    try:
        plan = quarantine.read_bytes(out, f"{number}.json", MAX_PLAN_BYTES)
        budget.keep(len(plan))
        script = script_of(plan, arguments)
        budget.keep(len(script.text))
    except quarantine.Refused as refused:
        reported = message_of(out, f"{number}.error") or None
        return Script(problem="" if refused.missing or reported else f"its plan {refused}"), reported
    except (Unreadable, Stopped) as problem:
        return Script(problem=str(problem)), ""
    return script, ""


def read_constants(out: Path, scripts: Iterable[Script], budget: Budget, found: dict[str, bytes]) -> None:
    """Add to `found` the constants that the scripts name. Raises Stopped, and Refused for a blob that is not what
    one of its plans says."""
    for each in dict.fromkeys(each for script in scripts for each in script.constants):
        if each.name not in found:
            found[each.name] = _blob(out, each.name, each.bytes, budget)
        elif len(found[each.name]) != each.bytes:
            raise Refused(_OTHER_BYTES)


def compile_kernels(
    out: Path,
    scripts: Iterable[Script],
    budget: Budget,
    loadable: Callable[[bytes, Sequence[str]], bytes],
    found: dict[Code, bytes],
) -> None:
    """Add to `found` what the replayer loads for each kernel that the scripts name. Raises as `read_constants`."""

    def made(code: Code) -> bytes:
        budget.left_s()
        content = loadable(_blob(out, code.ptx, None, budget), code.ptxas)
        budget.keep(len(content))
        return content

    codes = [each for each in dict.fromkeys(code for script in scripts for code in script.kernels) if each not in found]
    with ThreadPoolExecutor(cores(), initializer=draw_from, initargs=(budget,)) as pool:
        found.update(zip(codes, pool.map(made, codes), strict=True))


def _blob(out: Path, name: str, size: int | None, budget: Budget) -> bytes:
    """A blob of `size` bytes, by the name in a plan that was checked."""
    try:
        content = quarantine.read_bytes(out, f"blobs/{name}", MAX_KERNEL_BYTES if size is None else size)
    except quarantine.Refused as refused:
        raise Refused(f"a blob of its plan {refused}") from None
    if hashlib.sha256(content).hexdigest() != name or size not in (None, len(content)):
        raise Refused(_OTHER_BYTES)
    budget.keep(len(content))
    return content
