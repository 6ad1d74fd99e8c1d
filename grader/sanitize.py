"""compute-sanitizer on a submission: its findings in the shape of the emulator's, with a sentence of advice each.

Four tools, named as the emulator names them: memory (memcheck), race (racecheck, shared memory only), init
(initcheck, global memory only), sync (synccheck). Each runs the program, built with -lineinfo, once on a public
sample, confined like any run: compute-sanitizer works through libraries loaded into the program and the sandbox's
own loopback (tried on an H200, 2025.3.1, 2026-11-21).

Silence is only good news if the tool looked. A tool counts as run when it wrote its summary, the program launched
kernels, and the tool finds the fault in a canary (sanitizer_canary.cu) on this very machine.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from grader import sandbox
from grader.build import handed_in_name
from grader.engine.cuda import CudaEngine
from grader.errors import GraderFault, MachineFault, UsageError
from grader.ncu import nvidia_tools
from grader.paths import cache_folder
from grader.scratch import scratch_folder
from grader.trace import Diagnostic
from grader.trace.events import Dim3

Check = Literal["memory", "race", "init", "sync"]
CHECKS: tuple[Check, ...] = get_args(Check)

_TOOLS: dict[Check, tuple[str, ...]] = {
    "memory": ("--tool", "memcheck"),
    "race": ("--tool", "racecheck", "--racecheck-report", "hazard"),
    "init": ("--tool", "initcheck"),
    "sync": ("--tool", "synccheck"),
}
_PRINTED = 200
"""Findings the tool prints; it counts all."""

WALL_S = 120.0
_CANARY = Path(__file__).with_name("sanitizer_canary.cu")


@dataclass(frozen=True)
class Finding:
    """One fault, however often it was seen at that place: `first` is its first occurrence."""

    first: Diagnostic
    times: int


@dataclass(frozen=True)
class Report:
    """What one tool found. `not_run` says why it did not look, '' when it did; `errors` is its own total."""

    check: Check
    findings: tuple[Finding, ...] = ()
    errors: int = 0
    not_run: str = ""


def parse_checks(words: str) -> tuple[Check, ...]:
    """The tools that `words` name, comma-separated, or `all`. Raises UsageError."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    if wanted == ["all"]:
        return CHECKS
    for word in wanted:
        if word not in CHECKS:
            raise UsageError(f"--sanitize: there is no check {word!r}; choose from {', '.join(CHECKS)}, or all.")
    return tuple(check for check in CHECKS if check in wanted)


LEAKS = ("--leak-check", "full")
"""What memcheck needs to report memory that was never freed."""


def run_check(
    engine: CudaEngine,
    program: Path,
    arguments: Sequence[str],
    check: Check,
    *,
    readable: Sequence[Path],
    kernels: int,
    options: Sequence[str] = (),
    wall_s: float | None = None,
) -> Report:
    """Run one tool, with more `options`, on `program ARGUMENTS` for at most `wall_s` (WALL_S if None); `{output}` among
    the arguments becomes a path it may write to. `kernels`: how many the program launched in a plain run."""
    tool = engine.toolkit.tool("compute-sanitizer")
    if tool is None:
        return Report(check, not_run="compute-sanitizer is not installed: install the CUDA toolkit")
    if why := sandbox.tool_problem():
        return Report(check, not_run=why)
    if kernels == 0:
        return Report(check, not_run="the program launched no kernel")
    if not _finds_its_canary(engine, tool, check):
        return Report(check, not_run="it does not find the fault in a known wrong program on this machine")
    return parse_report(check, _run(engine, tool, check, program, arguments, readable, options, wall_s))


def _run(
    engine: CudaEngine,
    tool: Path,
    check: Check,
    program: Path,
    arguments: Sequence[str],
    readable: Sequence[Path],
    more: Sequence[str] = (),
    wall_s: float | None = None,
) -> str:
    """What the tool wrote to its log: not stdout, where the program could write what looks like findings."""
    wall_s = WALL_S if wall_s is None else wall_s
    with scratch_folder("sanitize") as scratch:
        folder, logs = scratch / "work", scratch / secrets.token_hex(8)
        folder.mkdir()
        logs.mkdir()
        log = logs / secrets.token_hex(8)
        given = [word.replace("{output}", str(folder / "output")) for word in arguments]
        launch = engine.launch(program, given, "", traced=False)
        options = ("--show-backtrace", "device", "--print-limit", str(_PRINTED), "--log-file", str(log))
        job = sandbox.Job(
            command=(str(tool), *_TOOLS[check], *options, *more, *launch.command),
            folder=folder,
            environment=launch.environment,
            readable=(program, engine.toolkit.root, *nvidia_tools(tool), *readable, *launch.readable),
            writable=(logs,),
            devices=launch.devices,
            starts_programs=True,
        )
        outcome = sandbox.run(job, sandbox.Limits(wall_s=wall_s, file_bytes=1 << 30))
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        if outcome.timed_out:
            text += f"\n========= the program was stopped after {wall_s:g} s"
        return text or outcome.stderr


# ---- what the tools write ---------------------------------------------------------------------------------------

_PREFIX = "========="
_AT = re.compile(r"(?:\bat|Device Frame:) (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^:]+):(?P<line>\d+))?$")
_OLD_AT = re.compile(r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>.+)$")
_WHO = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_SUMMARY = re.compile(r"ERROR SUMMARY: ([\d,]+) error|RACECHECK SUMMARY: [\d,]+ hazards? displayed \(([\d,]+) error")
_API = re.compile(r'Program hit (\w+) \(error (\d+)\) due to "(.*?)" on CUDA API call to (\w+)')
_HAZARD = re.compile(r"Potential (\w+) hazard detected at __shared__ 0x[0-9a-f]+ in block \((\d+),(\d+),(\d+)\)")
_HAZARD_SIDE = re.compile(r"(Read|Write) Thread \((\d+),(\d+),(\d+)\) (at .+)$")
_INTRINSICS = frozenset({"sm_30_intrinsics.hpp", "sm_20_intrinsics.hpp", "device_functions.hpp"})
"""Headers of the toolkit whose functions are inlined into kernels: the fault is where they were called."""
_LEAK = re.compile(r"Leaked ([\d,]+) bytes at 0x[0-9a-f]+")
_NEAREST = re.compile(r"is ([\d,]+) bytes (\w+) the nearest allocation at 0x[0-9a-f]+ of size ([\d,]+) bytes")
_BROKEN = re.compile(
    r"(terminated before first instrumented API call|Device not supported|Internal Sanitizer Error.*"
    r"|Unable to find injection library.*|No attachable process found|was stopped after [\d.]+ s)"
)

_ADVICE = {
    "Invalid __global__": "Compare the index with the allocation's size: the last block is the usual suspect.",
    "Invalid __shared__": "Compare the index with the shared array's size, the launch's dynamic size included.",
    "Invalid __local__": "An index into an array of the thread's own is too large.",
    "misaligned": "A float4 or float2 access needs an address that is a multiple of its size.",
    "leak": "Free what you allocate: a program that runs longer would run out of memory.",
    "hazard": "Put __syncthreads() (or __syncwarp() within a warp) between the two accesses.",
    "Uninitialized": "Write the memory before it is read, in a kernel or with cudaMemset.",
    "Barrier error.*[Ii]nvalid arg": "Every thread that calls a warp function must be in its mask.",
    "Barrier error|[Dd]ivergent": "Move the barrier out of the branch, so that all threads reach it.",
}
"""What to do about a message that matches."""


def parse_report(check: Check, text: str) -> Report:
    """A tool's log as a report."""
    summary = None
    findings: dict[tuple[str, str | None, str | None, int | None], Finding] = {}
    for block in _blocks(text):
        if (found := _SUMMARY.search(block[0])) is not None:
            summary = summary if summary is not None else int((found.group(1) or found.group(2)).replace(",", ""))
            continue
        diagnostic = _diagnostic(check, block)
        if diagnostic is not None:
            place = (_kind(diagnostic.message), diagnostic.kernel, diagnostic.file, diagnostic.line)
            seen = findings.get(place)
            findings[place] = Finding(seen.first if seen else diagnostic, seen.times + 1 if seen else 1)
    if (broken := _BROKEN.search(text)) is not None:
        return Report(check, tuple(findings.values()), summary or 0, not_run=broken.group(1))
    if summary is None:
        return Report(check, tuple(findings.values()), 0, not_run="it ended without a summary")
    return Report(check, tuple(findings.values()), summary)


def _blocks(text: str) -> Iterator[list[str]]:
    """Runs of lines with the tool's prefix, without it; an empty prefixed line or an unindented one begins anew."""
    block: list[str] = []
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        content = line[len(_PREFIX) :]
        if block and not content.startswith("     "):
            yield block
            block = []
        if content.strip():
            block.append(content.strip())
    if block:
        yield block


def _diagnostic(check: Check, block: list[str]) -> Diagnostic | None:
    head, rest = block[0], block[1:]
    if (api := _API.search(head)) is not None:
        name, code, why, function = api.groups()
        return Diagnostic("error", "api", f"{function} failed with {name} (error {code}): {why}.")
    if (hazard := _HAZARD.search(head)) is not None:
        return _race(hazard, rest)
    if (leak := _LEAK.search(head)) is not None:
        return Diagnostic("note", "memory", f"leak: {leak.group(1)} bytes were never freed", advice=_advice("leak"))
    frames = [_place(text) for text in rest if text.startswith(("at ", "Device Frame: "))]
    if not frames or frames[0][0] is None:
        return None
    kernel, file, line = next((f for f in frames if f[1] not in _INTRINSICS), frames[-1])
    who = next((found for text in rest if (found := _WHO.search(text)) is not None), None)
    numbers = [int(number) for number in who.groups()] if who else []
    more = _relation(" ".join(rest[1:]))
    message = head.removeprefix("Error: ").removeprefix("Warning: ") + (f", {more}" if more else "")
    return Diagnostic(
        severity="error",
        tool=check,
        message=" ".join(message.split()),
        kernel=kernel,
        thread=_dim(numbers[:3]),
        block=_dim(numbers[3:]),
        file=file,
        line=line,
        advice=_advice(" ".join(block)),
    )


def _relation(text: str) -> str:
    """What the tool says of the address, without the address, which means nothing to a reader."""
    if (near := _NEAREST.search(text)) is not None:
        return f"{near.group(1)} bytes {near.group(2)} the nearest allocation (of {near.group(3)} bytes)"
    return "misaligned" if "misaligned" in text else ""


def _race(hazard: re.Match[str], rest: list[str]) -> Diagnostic:
    sides = [found for text in rest if (found := _HAZARD_SIDE.search(text)) is not None]
    places = [_place(side.group(5)) for side in sides]
    kernel, file, line = places[0] if places else (None, None, None)
    words = []
    for side, (_, where, number) in zip(sides, places, strict=True):
        spot = f" ({where}:{number})" if where else ""
        words.append(f"thread ({','.join(side.group(2, 3, 4))}) {side.group(1).lower()}s{spot}")
    name = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}.get(hazard.group(1), "")
    return Diagnostic(
        severity="error",
        tool="race",
        message=f"Potential {hazard.group(1)} hazard ({name}) in shared memory: {' and '.join(words)}",
        kernel=kernel,
        block=_dim([int(number) for number in hazard.group(2, 3, 4)]),
        thread=_dim([int(number) for number in sides[0].group(2, 3, 4)]) if sides else None,
        file=file,
        line=line,
        advice=_advice("hazard"),
    )


def _place(text: str) -> tuple[str | None, str | None, int | None]:
    """(kernel, file, line) of an `at …` line, in the form of either generation of the tool."""
    for pattern in (_AT, _OLD_AT):
        if (found := pattern.search(text.strip())) is not None:
            line = found.group("line")
            return found.group("kernel"), found.group("file"), int(line) if line else None
    return None, None, None


def _dim(numbers: Sequence[int]) -> Dim3 | None:
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _advice(text: str) -> str | None:
    return next((advice for pattern, advice in _ADVICE.items() if re.search(pattern, text)), None)


def _kind(message: str) -> str:
    """A message without what differs between occurrences of one fault."""
    return re.sub(r"\(?\d[\d,]*\)?", "#", message)


def by_place(diagnostics: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """The emulator's diagnostics, one finding for each place and fault, errors first. Two accesses are one place only
    when both their lines are the same, whatever block, thread and address."""
    found: dict[tuple[str, ...], Finding] = {}
    for diagnostic in diagnostics:
        kind = re.sub(r"0x[0-9a-f]+|(?<!line )\b\d+", "#", diagnostic.message)
        place = (diagnostic.severity, kind, diagnostic.kernel or "", f"{diagnostic.file}:{diagnostic.line}")
        seen = found.get(place)
        found[place] = Finding(seen.first if seen else diagnostic, seen.times + 1 if seen else 1)
    rank = {"error": 0, "warning": 1}
    return tuple(sorted(found.values(), key=lambda finding: rank.get(finding.first.severity, 2)))


# ---- the canary -------------------------------------------------------------------------------------------------


def _finds_its_canary(engine: CudaEngine, tool: Path, check: Check) -> bool:
    """Whether the tool finds a known fault on this machine; tried once per tool, driver and GPU, then remembered."""
    key = hashlib.sha256(
        _CANARY.read_bytes() + f"{engine.identity()} {engine.gpu.driver} {engine.gpu.uuid} {tool.resolve()}".encode()
    ).hexdigest()[:16]
    folder = cache_folder() / "native"
    remembered = folder / f"sanitizer-{check}-{key}"
    if remembered.exists():
        return True
    program = folder / f"sanitizer-canary-{key}"
    if not program.exists():
        _build_canary(engine, program)
    found = parse_report(check, _run(engine, tool, check, program, [check], ()))
    if found.errors > 0 and not found.not_run:
        remembered.touch()
        return True
    return False


def _build_canary(engine: CudaEngine, program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder("canary", program.parent) as folder:
        (folder / _CANARY.name).write_bytes(_CANARY.read_bytes())
        run = sandbox.runner(120, readable=engine.build_paths, writable=(folder,))
        made = engine.compile([_CANARY.name], ["-O1", "-lineinfo"], folder=folder, output=folder / "canary", run=run)
        if not made.ok:
            raise GraderFault(f"The sanitizer's canary does not compile: {made.log[:400]}")
        try:
            (folder / "canary").replace(program)
        except OSError as error:
            raise MachineFault(f"{program} cannot be written: {error.strerror}.") from error


# ---- for people -------------------------------------------------------------------------------------------------

SHOWN = 5
WIDTH = 100


def render(reports: Sequence[Report]) -> str:
    """The reports as a student reads them: per tool the first few places, with advice, and how many in all."""
    lines = []
    for report in reports:
        if report.not_run:
            lines.append(f"{report.check}: not run: {report.not_run}.")
        elif not report.errors:
            lines.append(f"{report.check}: {'no error' if report.findings else 'nothing found'}.")
        else:
            lines.append(f"{report.check}: {report.errors:,} error{'s' if report.errors > 1 else ''}.")
        for finding in report.findings[:SHOWN]:
            lines += [part for line in describe(finding.first, finding.times) for part in _wrapped(line)]
        more = len(report.findings) - SHOWN
        if more > 0:
            lines.append(f"  and {more} more places.")
    return "\n".join(lines)


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def describe(diagnostic: Diagnostic, times: int = 1) -> list[str]:
    """One finding in two or three lines: what, where, what to do."""
    where = [f"{handed_in_name(diagnostic.file)}:{diagnostic.line}"] if diagnostic.file else []
    where += [f"in {diagnostic.kernel}"] if diagnostic.kernel else []
    where += [f"block {_dim_text(diagnostic.block)}"] if diagnostic.block else []
    where += [f"thread {_dim_text(diagnostic.thread)}"] if diagnostic.thread else []
    seen = f" (seen {times:,} times at this place)" if times > 1 else ""
    kind = "note: " if diagnostic.severity == "note" else ""
    lines = [f"  {kind}{diagnostic.message}{seen}"]
    if where:
        lines.append(f"    at {', '.join(where)}")
    if diagnostic.advice:
        lines.append(f"    {diagnostic.advice}")
    return lines


def _dim_text(dim: Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def with_lines(flags: Sequence[str]) -> tuple[str, ...]:
    """Build flags that make the tools name files and lines."""
    return (*flags, *(() if "-lineinfo" in flags or "-G" in flags else ("-lineinfo",)))
