"""Run and Check → verdict: what became of a testcase, whose fault it is, and the sentence a student reads.

The output file decides. Exit codes, signals and CUDA errors only explain an output that is wrong or missing, so a
program that crashes after writing the right answer has passed, with a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check
from grader.profiling.kernel_profile import normal_name
from grader.programs.build import handed_in_name
from grader.programs.run import Run
from grader.programs.trace import Trace
from grader.sanitizers import sentence

_MACHINE_ERRORS = {3, 35, 36, 46, 100, 101, 214, 226, 802, 803, 804}
"""CUDA error codes that mean driver or GPU trouble, not a program's mistake (CUDA Runtime API, cudaError_t):
no or unusable device, initialisation, driver version, uncorrectable ECC and NVLink errors, system not ready."""
_OUT_OF_MEMORY = 2
_LAUNCH_TIMEOUT = 702
"""cudaErrorLaunchTimeout: a kernel ran longer than whoever watches kernels allows."""


@dataclass(frozen=True)
class Judgement:
    """One testcase's verdict. `fault` is None when it passed; `warnings` cost nothing."""

    verdict: Verdict
    fault: Fault | None
    reason: str
    warnings: tuple[str, ...] = ()


def judge(
    run: Run,
    check: Check,
    *,
    limit_s: float,
    limit_name: str,
    diagnosis: str | None = None,
    machine_fails: Callable[[], bool] = lambda: True,
) -> Judgement:
    """`limit_name` says whose time limit it was; `diagnosis` a likely cause of a wrong answer. `machine_fails` is asked
    when CUDA errors in the trace speak of the machine: a program can write such lines, and can provoke such errors, by
    asking for a GPU that is not there or by hiding the one that is."""
    outcome, trace = run.outcome, run.trace
    if outcome.timed_out:
        reason = f"Stopped at {limit_name} of {limit_s:g} s{_last_seen(trace)}."
        return Judgement(Verdict.TIME_LIMIT, Fault.STUDENT, _still_running(trace) + reason)
    if outcome.broke:
        return Judgement(*_broken_limit(run, check))
    if check.passed:
        return Judgement(Verdict.PASSED, None, "", _warnings(run))
    if (machine := _machine_error(trace)) is not None and machine_fails():
        return Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, machine)
    if (error := _first_error(trace)) is not None and error[1] == _LAUNCH_TIMEOUT:
        reason = f"A kernel was stopped, near {limit_name} of {limit_s:g} s."
        return Judgement(Verdict.TIME_LIMIT, Fault.STUDENT, _still_running(trace) + reason)
    if (failure := _emulator_failure(run)) is not None:
        return Judgement(Verdict.GRADER_ERROR, Fault.GRADER, failure)
    verdict, reason = _failure(run, check)
    if verdict is Verdict.WRONG_ANSWER and diagnosis:
        reason = f"{reason} {diagnosis}"
    if verdict is not Verdict.RUNTIME_ERROR:
        reason += _told(trace)
    return Judgement(verdict, Fault.STUDENT, reason, ())


def _broken_limit(run: Run, check: Check) -> tuple[Verdict, Fault, str]:
    peak = run.outcome.peak_memory_bytes / 2**30
    match run.outcome.broke:
        case "memory":
            return Verdict.MEMORY_LIMIT, Fault.STUDENT, f"Stopped for its host memory: it had used {peak:.1f} GiB."
        case "folder":
            size = f"{check.expected_bytes:,} bytes"
            return Verdict.RUNTIME_ERROR, Fault.STUDENT, f"Stopped for filling the disk: the output here is {size}."
        case _:
            return Verdict.RUNTIME_ERROR, Fault.STUDENT, "Stopped for starting too many processes or threads."


def _failure(run: Run, check: Check) -> tuple[Verdict, str]:
    outcome, trace = run.outcome, run.trace
    cuda = _first_error(trace)
    if outcome.signal == "SIGKILL":
        peak = outcome.peak_memory_bytes / 2**30
        return Verdict.MEMORY_LIMIT, f"Killed by the system, most likely for its memory: it had used {peak:.1f} GiB."
    if outcome.signal == "SIGXFSZ":
        return (
            Verdict.RUNTIME_ERROR,
            f"Stopped for writing too large a file: the output here is {check.expected_bytes:,} bytes.",
        )
    if cuda is not None and cuda[1] == _OUT_OF_MEMORY:
        return Verdict.MEMORY_LIMIT, f"{cuda[0]} failed: it asked for more memory than the GPU has left."
    if outcome.signal is not None:
        hint = {
            "SIGSEGV": "host code touched memory that is not its own, perhaps through a device pointer",
            "SIGABRT": "it aborted: an assert, std::terminate or corrupted heap",
            "SIGFPE": "an integer was divided by zero on the host",
            "SIGBUS": "it touched a mapped file beyond its end",
        }.get(outcome.signal)
        return Verdict.RUNTIME_ERROR, f"Crashed with {outcome.signal}{f': {hint}' if hint else ''}.{_told(trace)}"
    if cuda is not None:
        # What the engine saw is the cause and comes first; which values are wrong is its consequence.
        told = _told(trace)
        output = f" {check.reason}" if not told or check.kind == "missing" else ""
        return Verdict.RUNTIME_ERROR, f"{cuda[0]} failed with {cuda[2]} (error {cuda[1]}).{told}{output}"
    if check.kind in ("missing", "not_a_file") or check.found_bytes == 0:
        where = "the output's path is the program's second argument"
        return Verdict.NO_OUTPUT, f"{check.reason} The program ended with exit code {outcome.exit_code}; {where}."
    return Verdict.WRONG_ANSWER, check.reason


def _first_error(trace: Trace | None) -> tuple[str, int, str] | None:
    """(function, code, name) of the first failing CUDA call."""
    if trace is None or not trace.api_errors:
        return None
    first = trace.api_errors[0]
    return first.function, first.code, first.name


def _machine_error(trace: Trace | None) -> str | None:
    for error in trace.api_errors if trace is not None else ():
        if error.code in _MACHINE_ERRORS:
            return f"The GPU or its driver failed: {error.function} said {error.name} (error {error.code})."
    return None


def _emulator_failure(run: Run) -> str | None:
    """What the emulator said of a crash of its own code. A program could write as much, and would then be looked at by
    someone, without points."""
    if run.trace is None or run.trace.engine != "emulator" or run.outcome.signal is None:
        return None
    told = (d for d in run.trace.diagnostics if d.tool == "emulator")
    return next((f"{_sentence(d.message)}. {d.advice}" for d in told), None)


def _told(trace: Trace | None) -> str:
    """What the engine itself saw go wrong: the emulator names line, thread and address."""
    for diagnostic in trace.diagnostics if trace is not None else ():
        if diagnostic.severity == "error":
            message = _sentence(diagnostic.message)
            where = f" ({handed_in_name(diagnostic.file)}:{diagnostic.line})" if diagnostic.file else ""
            advice = f" {diagnostic.advice}" if diagnostic.advice else ""
            return f" {message}{where}.{advice}"
    return ""


def _still_running(trace: Trace | None) -> str:
    """Which loop did not end, with a blank behind it: where, what, what to do."""
    seen = [d for d in (trace.diagnostics if trace else ()) if d.tool == "sync"]
    return f"{sentence(seen[-1])} " if seen else ""


def _sentence(message: str) -> str:
    """`message` with a capital letter, unless it begins with a name such as cudaMemcpy, and without its full stop."""
    word = message.split(" ", 1)[0].rstrip(",:")
    start = message[:1].upper() if word.isalpha() and word.islower() else message[:1]
    return start + message[1:].rstrip(". ")


def _last_seen(trace: Trace | None) -> str:
    if trace is None:
        return ""
    if not trace.kernels:
        return "; no kernel had finished"
    count = len(trace.kernels)
    return f"; {count:,} kernel{'s' * (count > 1)} had finished, the last was {normal_name(trace.kernels[-1].name)}"


def _warnings(run: Run) -> tuple[str, ...]:
    warnings = []
    if run.outcome.signal is not None or run.outcome.exit_code != 0:
        warnings.append(f"The output is right, but the program ended with {run.outcome.ending}.")
    if run.outcome.killed_leftovers:
        warnings.append(f"{run.outcome.killed_leftovers} processes were still running after it and were killed.")
    error = _first_error(run.trace)
    if error is not None:
        warnings.append(f"The output is right, but {error[0]} failed with {error[2]}.")
    warnings += [d.message for d in (run.trace.diagnostics if run.trace else ()) if d.severity == "error"]
    return tuple(warnings)
