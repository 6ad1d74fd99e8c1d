"""Builds a submission: the result is a program to run, or the compiler's messages. Builds are cached by content.

The cache's key covers the files, the flags, the engine and its compiler, so a build is reused exactly when
compiling again would make the same program. A failed build is not cached, since the machine may be the cause.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cudaemu.process import Stopped
from grader import sandbox
from grader.base.machine import cpu_features
from grader.base.names import SOURCE_FOLDER, spelled_out
from grader.base.verdict import Fault
from grader.course.assignment import Assignment
from grader.course.coherence import suite_of
from grader.course.distributions import Constant, Normal, Uniform
from grader.course.seeds import draw_tensors, public_seed
from grader.course.testcase import Case
from grader.plans.contract import Arguments, arguments_of
from grader.programs import control
from grader.programs.compile_errors import failure_sentence
from grader.programs.engine import Compiled, Engine, plan_program
from grader.programs.function_contract import DECLARATION, MAIN, added_files, is_function, signature, taken_name
from grader.programs.submission import Submission
from grader.sandbox import quarantine
from grader.sandbox.budget import Budget, drawing
from grader.sandbox.cache import cache_entry, making, mark_used, put

_MAX_LOG = 256 << 10
"""Characters of the compilers' messages that are looked at; a record keeps the beginning of them."""
_MAX_KEPT_BYTES = 128 << 20
"""Of what the cache keeps of one build: ten bytes of source can initialise an array of gigabytes. The largest honest
program has 11 MB."""
_MOST_SAMPLE_VALUES = 1 << 18
"""Of the values that autotune's trials read; they are repeated until a tensor is full."""
_NVCC_TEMPORARY = re.compile(r"(?:/tmp/)?tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_")
"""The beginning of the name of nvcc's intermediate files; the rest is the source's name."""
_GCC_TEMPORARY = re.compile(r"/tmp/cc\w{6}\.\w+(?::\d+)?")
"""What gcc hands to the assembler, and its line there."""
_LACKING_CURAND = re.compile(
    r"\bgrader_lacks_curand::(\w+)|grader_lacks_curand\d+(curand_?[a-z0-9_]*|skipahead[a-z_]*)"
)
"""The linker's name of a cuRAND function that stubs/include/curand_kernel.h declares without defining it."""


@dataclass(frozen=True)
class Build:
    """The result of building. If compiling failed, `program` is None, `fault` says whose failure it is, and `reason` is
    a sentence for the student. `log` is the compiler's whole output. `seconds` is the time that compiling took, also
    for a build from the cache."""

    program: Path | None
    fault: Fault | None
    reason: str
    log: str
    seconds: float
    cached: bool
    key: str

    @property
    def ok(self) -> bool:
        return self.program is not None


def build(submission: Submission, assignment: Assignment, engine: Engine, cases: Sequence[Case] = ()) -> Build:
    """Compile `submission` for `engine`, or find the build in the cache. Raises MachineFault if the machine fails.

    A Python submission is recorded for the shapes of the `cases`; for those of all public testcases if there are
    none. The main around a function knows the shapes of the `cases` and of all testcases."""
    if submission.is_python and not cases:
        cases = [case for case in suite_of(assignment).cases.values() if not case.hidden]
    key = _key(submission, assignment, engine, cases)
    folder = cache_entry("builds", key)
    if (kept := _read_cached(folder, key)) is not None:
        mark_used(folder)
        return kept

    blame = control.Blame(engine, python=submission.is_python)
    for _ in range(control.TRIES):
        with blame, making(folder) as scratch:
            return _compile(submission, assignment, engine, key, scratch, folder, cases)
    return failed_build(Fault.STUDENT, blame.caused)


def failed_build(fault: Fault, problem: str) -> Build:
    """A failed build, for a submission that no compiler gets to see: `problem` is the reason."""
    return Build(None, fault, problem, problem, 0.0, cached=False, key="")


def _compile(
    submission: Submission,
    assignment: Assignment,
    engine: Engine,
    key: str,
    scratch: Path,
    folder: Path,
    cases: Sequence[Case],
) -> Build:
    sources, product = scratch / SOURCE_FOLDER, scratch / "build"
    sources.mkdir()
    product.mkdir()
    submission.write_to(sources)
    began = time.monotonic()
    name = plan_program.PACKAGE if submission.is_python else "program"
    if submission.is_python:
        made = _record(submission, assignment, engine, sources, product / name, cases)
    else:
        made = _compile_sources(submission, assignment, engine, sources, product / name, cases)
    seconds = time.monotonic() - began
    log = _in_their_names(made.log[:_MAX_LOG], sources, scratch)
    if not made.ok:
        machine = "" if _names_their_line(log, submission) else control.compile_problem(engine)
        # the log quotes lines, and Python says what it likes and calls no cuRAND
        theirs = submission.is_python or any(b"grader_lacks_curand" in content for _, content in submission.files)
        if (lacking := _LACKING_CURAND.search(log)) and not theirs and control.lacks_curand():
            machine = (
                f"Its kernels call {lacking[1] or lacking[2]} of cuRAND, but this machine's CUDA toolkit has no "
                "curand_kernel.h: install it with `pip install nvidia-curand`, or use a full toolkit "
                "(NVCC=…/bin/nvcc)."
            )
        own = [file for file in submission.files if file[0] in submission.sources]
        others = [file for file in submission.files if file not in own]
        fault = Fault.MACHINE if machine else Fault.STUDENT  # not without a witness: see `control`
        wanted = signature(suite_of(assignment)) if is_function(submission, assignment) else ""
        reason = machine or failure_sentence(
            log, assignment, lacking=made.lacking, compiled=own, uncompiled=others, solve=wanted
        )
        return Build(None, fault, reason, log, seconds, cached=False, key=key)
    kept = Path(tempfile.mkdtemp(dir=scratch))  # compilers could not write to this new folder
    kept.chmod(0o755)
    if not quarantine.claim(product, name, kept / name, program=True):
        reason = "It does not compile: the compiler ended without an error but wrote no program."
        return Build(None, Fault.STUDENT, reason, log, seconds, cached=False, key=key)
    (kept / "build.json").write_text(json.dumps({"log": log, "seconds": seconds}))
    put(kept, folder)
    return Build(folder / name, None, "", log, seconds, cached=False, key=key)


def _compile_sources(
    submission: Submission, assignment: Assignment, engine: Engine, sources: Path, output: Path, cases: Sequence[Case]
) -> Compiled:
    readable, names, flags = (*engine.build_paths, sources.parent), submission.sources, _flags(submission, assignment)
    if is_function(submission, assignment):
        added = added_files(suite_of(assignment), cases)
        if taken := taken_name(submission, added):  # the source rules saw another file than the compiler would
            return Compiled(Fault.STUDENT, f"{taken}: error: the grader's own file has this name: rename yours.")
        for name, text in added.items():
            (sources / name).write_text(text, encoding="utf-8")
        names, flags = (*names, MAIN), (*flags, "-include", DECLARATION)
    try:
        with drawing(Budget(assignment.build.limit_s, "Compiling", _MAX_KEPT_BYTES)) as budget:
            run = sandbox.linker(budget, readable=readable, writable=(output.parent,))
            made = engine.compile(names, flags, folder=sources, output=output, run=run)
            if os.path.lexists(output):
                budget.keep(output.lstat().st_size)
            return made
    except Stopped as stopped:
        return Compiled(Fault.STUDENT, str(stopped))


def _record(
    submission: Submission, assignment: Assignment, engine: Engine, sources: Path, output: Path, cases: Sequence[Case]
) -> Compiled:
    """Record a Python submission for the shapes of the cases, the small ones first."""
    main, limit_s = submission.sources[0], assignment.build.limit_s
    with ThreadPoolExecutor(1) as pool:
        pool.submit(engine.replay)  # the first time on a machine, the replayer is compiled meanwhile
        made = plan_program.record(main, sources, output.parent, engine.recording(), shapes_of(cases), limit_s=limit_s)
    if made.ok:
        output.write_bytes(made.package)
        output.chmod(0o755)
    return made


def shapes_of(cases: Sequence[Case]) -> tuple[plan_program.ShapeToRecord, ...]:
    """The shapes of some cases, each once, the small ones first."""
    found: dict[bytes, plan_program.ShapeToRecord] = {}
    for case in sorted(cases, key=lambda case: case.input_bytes):
        header, operator = case.operator.encode_header(case.shape), case.operator
        hidden = case.hidden and (header not in found or found[header].hidden)
        arguments = arguments_of(operator, case.shape)
        found[header] = plan_program.ShapeToRecord(header, arguments, _samples(case, arguments), hidden)
    return tuple(found.values())


def _samples(case: Case, arguments: Arguments) -> dict[int, bytes]:
    """Some values of the case's distribution for each input buffer, from a seed that no testcase has."""
    operator, shape, distribution = case.operator, case.shape, case.distribution
    inputs = {tensor.name.lower(): tensor.type for tensor in operator.inputs(shape)}
    if isinstance(distribution, Uniform | Constant | Normal):
        values = distribution.values(np.random.default_rng(0).random(_MOST_SAMPLE_VALUES, np.float32))
        drawn = dict.fromkeys(inputs, values)
    else:
        drawn = dict(
            zip(inputs, draw_tensors(operator, shape, distribution, public_seed("trials"), "", 0), strict=True)
        )
    return {
        tensor.buffer: inputs[tensor.name].encode(drawn[tensor.name].ravel()[:_MOST_SAMPLE_VALUES]).tobytes()
        for tensor in arguments.tensors
        if arguments.buffers[tensor.buffer].file == "input"
    }


def _in_their_names(log: str, sources: Path, scratch: Path) -> str:
    """`log` with the files' names as handed in, and without the folders and numbers of nvcc's intermediate files."""
    log = spelled_out(log)
    for folder in dict.fromkeys((sources, sources.resolve())):
        log = log.replace(f"{folder}/", "")
    places = "|".join(re.escape(str(place)) for place in dict.fromkeys((scratch, scratch.resolve())))
    log = re.sub(rf"(?:{places})/[^\s:'\"`,()]*/|^(?:\./)+", "", log, flags=re.MULTILINE)
    return _GCC_TEMPORARY.sub("assembler", _NVCC_TEMPORARY.sub("", log)).strip()


def _names_their_line(log: str, submission: Submission) -> bool:
    """Whether the compiler found an error in one of the submission's own lines."""
    names = "|".join(re.escape(name) for name, _ in submission.files)
    return re.search(rf"^(?:{names})(?:\(\d{{1,9}}\)|:\d{{1,9}}\b).*\b[Ee]rror\b", log, re.MULTILINE) is not None


def _read_cached(folder: Path, key: str) -> Build | None:
    try:
        facts = json.loads((folder / "build.json").read_text())
        log, seconds = str(facts["log"]), float(facts["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    names = ("program", plan_program.PACKAGE)
    program = next((folder / name for name in names if (folder / name).is_file()), folder / "program")
    return Build(program, None, "", log, seconds, cached=True, key=key) if os.access(program, os.X_OK) else None


def _flags(submission: Submission, assignment: Assignment) -> tuple[str, ...]:
    """nvcc's flags: the submission's and, if the assignment forbids kernels that launch kernels, the flag that leaves
    out the library for such launches."""
    return submission.flags if assignment.build.dynamic_parallelism else (*submission.flags, "--cudadevrt=none")


def _key(submission: Submission, assignment: Assignment, engine: Engine, cases: Sequence[Case] = ()) -> str:
    native = any("native" in flag for flag in submission.flags)  # machines with different processors may share a cache
    processor = cpu_features() if native else platform.machine()
    flags = _flags(submission, assignment)
    parts = [processor, submission.sha256, engine.identity(), *submission.sources, "flags", *flags]
    if submission.is_python:
        headers = {case.operator.encode_header(case.shape).hex() for case in cases}
        parts += [plan_program.identity(), assignment.name, *sorted(headers)]
    if is_function(submission, assignment):
        parts += added_files(suite_of(assignment), cases).values()
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
