"""Judges a run: the verdict on a testcase, whose fault a failure is, and the sentence that a student reads.

The output file decides. Exit codes, signals and CUDA errors only explain why an output is wrong or missing, so a
program that crashes after writing the right answer has passed, with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.base.hints import hint
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check
from grader.checking.contradictions import contradictions
from grader.checking.diagnose import Diagnosis
from grader.checking.slips import find_slip, slips
from grader.findings import Finding, kind_of, rank, sentence, short_kernel
from grader.programs import control
from grader.programs.engine import Engine
from grader.programs.run import Run
from grader.programs.submission import Submission
from grader.programs.trace import Trace
from grader.records.record import MAX_FINDINGS
from grader.sandbox.room import shortened
from grader.sanitizers import Files, explained, said_of

_MACHINE_ERRORS = {3, 35, 36, 46, 100, 101, 214, 226, 802, 803, 804}
"""CUDA error codes that mean driver or GPU trouble, not a program's mistake (CUDA Runtime API, cudaError_t):
no or unusable device, initialisation, driver version, uncorrectable ECC and NVLink errors, system not ready."""
_OUT_OF_MEMORY = 2
BUT = "The output is right, but: "
"""The beginning of a warning that names the line of a mistake that did no harm in this run."""
_LAUNCH_TIMEOUT = 702
"""cudaErrorLaunchTimeout: a kernel ran longer than the driver or the emulator allows."""
_MOST_SAID = 300
"""Characters of the replayer's last line."""


@dataclass(frozen=True)
class Judgement:
    """The judgement on one testcase. `fault` is None if it passed. `cause` explains the failure, '' if nothing does;
    `consequence` is what else happened. `warnings` cost no points. `findings` are facts behind it. `open`: whether
    `explained_failure` may find its cause."""

    verdict: Verdict
    fault: Fault | None
    consequence: str = ""
    cause: str = ""
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    open: bool = False

    @property
    def reason(self) -> str:
        """The sentences that a student reads."""
        return " ".join(filter(None, (self.cause, self.consequence)))


def judge(
    run: Run,
    check: Check,
    *,
    limit: str,
    files: Files = (),
    engine: Engine | None = None,
    last: bool = True,
) -> Judgement:
    """Judge one run by its check. `limit` names the time limit and its seconds. Sentences quote lines of `files`, those
    of the submission. On the `last` try, CUDA errors in the trace that blame the machine count only if the grader's own
    test of the `engine` fails too: a program can write such trace lines itself, and it can provoke such errors by
    asking for a GPU that does not exist or by hiding the one that does. In the same way the control program confirms
    a crash that the emulator reports as its own. Without an engine, both are believed."""
    outcome, trace = run.outcome, run.trace
    if outcome.timed_out:
        reason = f"Stopped at {limit}{_last_seen(trace)}."
        return _failed(Verdict.TIME_LIMIT, hint("", _still_running, trace, files), reason)
    if outcome.broke:
        return _failed(*_broken_limit(run, check))
    if check.passed:
        return Judgement(Verdict.PASSED, None, warnings=_warnings(run, files))
    if (machine := _machine_error(trace)) is not None and not (last and engine and not engine.problem()):
        return Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, machine)
    if (error := _first_error(trace)) is not None and error[1] == _LAUNCH_TIMEOUT:
        reason = f"A kernel was stopped, near {limit}."
        return _failed(Verdict.TIME_LIMIT, hint("", _still_running, trace, files), reason)
    if (failure := _emulator_failure(run)) is not None:
        if engine is None or control.problem(engine):
            return Judgement(Verdict.GRADER_ERROR, Fault.GRADER, failure)
        return _failed(Verdict.RUNTIME_ERROR, failure, "The emulator runs the grader's own program: this is a crash.")
    seen, facts = hint("", _seen, run, files), hint((), _facts, run, files)
    return replace(_failed(*_failure(run, check, "", "", seen)), findings=facts, open=True)


def explained_failure(run: Run, check: Check, submission: Submission, diagnosis: Diagnosis | None) -> Judgement:
    """The judgement on a run whose failure is `open`, with its likely cause: what leaves no result that could be right,
    what the engine saw, what the source alone shows, or `diagnosis`, which the wrong output shows. It takes seconds."""
    files = submission.files
    wrong = hint((), _contradictions, run, check, submission)
    where, pattern = (diagnosis.where, diagnosis.finding) if diagnosis is not None else ("", None)
    likely = hint("", _likely, wrong, pattern, submission)
    seen = "" if wrong else hint("", _seen, run, files)
    shown: tuple[Finding, ...] = (pattern,) if pattern is not None else ()
    facts = hint(shown, lambda: _facts(run, files, (*wrong, *slips(files)), shown))
    return replace(_failed(*_failure(run, check, likely, where, seen)), findings=facts)


def _facts(
    run: Run, files: Files, before: tuple[Finding, ...] = (), shown: tuple[Finding, ...] = ()
) -> tuple[Finding, ...]:
    """What the source shows, what the engine saw, and what the output has `shown`, the likeliest first."""
    return rank([(*before, *explained(_found(run)[:MAX_FINDINGS], files), *shown)])


def _contradictions(run: Run, check: Check, submission: Submission) -> tuple[Finding, ...]:
    """What leaves no result that could be right, such as a missing copy back."""
    if submission.is_python or run.outcome.signal or check.kind not in ("values", "precision"):
        return ()
    return explained(contradictions(submission.files, run.trace), submission.files)


def _failed(verdict: Verdict, cause: str, consequence: str = "") -> Judgement:
    """A student's failure: the cause, then its consequence."""
    return Judgement(verdict, Fault.STUDENT, consequence, cause)


def _broken_limit(run: Run, check: Check) -> tuple[Verdict, str]:
    peak = run.outcome.peak_memory_bytes / 2**30
    match run.outcome.broke:
        case "memory":
            return Verdict.MEMORY_LIMIT, f"Stopped because it used too much host memory: {peak:.1f} GiB."
        case "folder":
            size = f"{check.expected_bytes:,} bytes"
            return Verdict.RUNTIME_ERROR, f"Stopped because it filled the disk: its output should have {size}."
        case _:
            return Verdict.RUNTIME_ERROR, "Stopped because it started too many processes or threads."


def _likely(wrong: Sequence[Finding], pattern: Finding | None, submission: Submission) -> str:
    """What is `wrong` for certain, else a mistake that the source alone shows, else what the output looks like."""
    if wrong:
        return sentence(wrong[0], submission.line)
    found = find_slip(submission.files, pattern) or pattern
    return sentence(found, submission.line) if found is not None else ""


def _failure(run: Run, check: Check, likely: str, where: str, seen: str) -> tuple[Verdict, str, str]:
    """Return (verdict, cause, consequence). If the engine has seen a fault, that is the cause. The failed call and the
    missing output are its consequences, so the report omits them."""
    outcome = run.outcome
    cuda = _first_error(run.trace)
    if outcome.signal == "SIGXFSZ":
        size = f"{check.expected_bytes:,} bytes"
        return Verdict.RUNTIME_ERROR, f"Stopped because it wrote too large a file: its output should have {size}.", ""
    if cuda is not None and cuda[1] == _OUT_OF_MEMORY:
        asked = f"{cuda[0]} failed: it asked for more memory than the GPU has left."
        return Verdict.MEMORY_LIMIT, seen or asked, ""
    if outcome.signal is not None:
        hints = {
            "SIGSEGV": "host code touched memory that is not its own, perhaps through a device pointer",
            "SIGABRT": "it aborted: an assert, std::terminate or corrupted heap",
            "SIGFPE": "an integer was divided by zero on the host",
            "SIGBUS": "it touched a mapped file beyond its end",
            "SIGKILL": "neither the grader nor a lack of memory ended it, so look at the program's own calls of kill",
        }
        hint = None if run.replayed else hints.get(outcome.signal)
        return Verdict.RUNTIME_ERROR, seen or f"Crashed with {outcome.signal}{f': {hint}' if hint else ''}.", ""
    if cuda is not None:
        return Verdict.RUNTIME_ERROR, seen or f"{cuda[0]} failed with {cuda[2]} (error {cuda[1]}).", ""
    if run.replayed and outcome.exit_code and (said := outcome.stderr.strip().rpartition("\n")[2]):
        return Verdict.RUNTIME_ERROR, seen or f"It stopped before the end: {shortened(said, _MOST_SAID)}", ""
    if check.kind in ("missing", "not_a_file") or check.found_bytes == 0:
        where = "the output's path is the program's second argument"
        ended = f"The program ended with exit code {outcome.exit_code}; {where}."
        return Verdict.NO_OUTPUT, seen, f"{check.reason} {ended}"
    cause = " ".join(filter(None, (seen, likely)))
    return Verdict.WRONG_ANSWER, cause, f"{check.reason} {where}".strip()


def _first_error(trace: Trace | None) -> tuple[str, int, str] | None:
    """(function, code, name) of the first CUDA call that failed."""
    if trace is None or not trace.api_errors:
        return None
    first = trace.api_errors[0]
    return first.function, first.code, first.name


def _machine_error(trace: Trace | None) -> str | None:
    for error in trace.api_errors if trace is not None else ():
        if error.code in _MACHINE_ERRORS:
            return f"The GPU or its driver failed: {error.function} returned {error.name} (error {error.code})."
    return None


def _emulator_failure(run: Run) -> str | None:
    """The emulator's own report of a crash in its code, which a program can forge."""
    if run.trace is None or run.trace.engine != "emulator" or run.outcome.signal is None:
        return None
    crash = next((found for found in run.trace.findings if found.kind == "emulator_failed"), None)
    return _capital(said_of(crash)) if crash is not None else None


def _found(run: Run) -> tuple[Finding, ...]:
    """What the engine found. The host code of a replay is the grader's own, so nothing is said about it."""
    findings = run.trace.findings if run.trace is not None else ()
    return tuple(each for each in findings if not (run.replayed and each.kind == "host_crash"))


def _seen(run: Run, files: Files) -> str:
    """A sentence on the error that the engine itself saw: the emulator names the line, thread and allocation."""
    found = [each for each in _found(run) if kind_of(each).severity == "error"]
    return said_of(found[0], files) if found else ""


def _still_running(trace: Trace | None, files: Files) -> str:
    """A sentence on the loop that did not end: where it is, what happened, what to do."""
    seen = [each for each in (trace.findings if trace else ()) if kind_of(each).check == "sync"]
    return said_of(seen[-1], files) if seen else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _last_seen(trace: Trace | None) -> str:
    if trace is None:
        return ""
    if (last := trace.last_kernel) is None:
        return "; no kernel had finished"
    count = trace.launch_count
    return f"; at least {count:,} kernel{'s' * (count > 1)} had finished, the last was {short_kernel(last.name)}"


def _warnings(run: Run, files: Files) -> tuple[str, ...]:
    warnings = []
    if run.outcome.signal is not None or run.outcome.exit_code != 0:
        warnings.append(f"The output is right, but the program ended with {run.outcome.ending}.")
    if run.outcome.killed_leftovers:
        count = run.outcome.killed_leftovers
        were = "process was" if count == 1 else "processes were"
        warnings.append(f"{count} {were} still running after the program ended; the grader killed them.")
    error = _first_error(run.trace)
    if seen := hint("", _seen, run, files):
        warnings.append(f"{BUT}{seen}")
    elif error is not None:
        warnings.append(f"The output is right, but {error[0]} failed with {error[2]}.")
    return tuple(warnings)
