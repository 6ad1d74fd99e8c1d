"""Renders a record as text that a student reads from top to bottom: the causes of failures, the table, the score.

Compilers quote the student's source, and programs print any text. Control characters in such text are spelled out,
since they could overwrite this report with a forged one.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from tabulate import tabulate

from grader.base.names import spelled_out
from grader.base.verdict import Fault, Verdict
from grader.findings import phrase
from grader.grading.judgement import BUT
from grader.operators import shape_words
from grader.records.record import CloserLookRecord, CornerRecord, Record, TestRecord
from grader.report.failures import alike, causes, consequence, split_by_shape

WIDTH = 100
MAX_CAUSES = 3
"""The number of causes that a report lists without --verbose. A student fixes one cause at a time."""
LONG_CAUSE = 2
"""In a cause with more line breaks, the quoted source line follows the first sentence, to be among the first lines."""
MAX_LAST_WORDS = 12
MAX_LINE = 200
"""The most characters of a line that are shown from a program that wrote no output file."""
_WORD = 11
"""Characters of a printed number: sign, digit, point, four digits, exponent."""
_LINE = re.compile(r" (?=Look at \S+:\d+: `)")
"""The space before a quoted source line, where the report starts a new line."""


def render(record: Record, *, verbose: bool = False) -> str:
    """Render the whole report. `verbose` adds the compiler's log and the output of failing programs."""
    blocks = [_heading(record), *_causes(record, verbose), *_build(record, verbose), *_results(record, verbose)]
    blocks += [*_warnings(record), _score(record), *_notes(record)]
    return spelled_out("\n\n".join(block for block in blocks if block))


def render_check(record: Record, *, verbose: bool = False) -> str:
    """Render the report of `grader check`: what is wrong, a line for each test, and a sentence in place of the
    score."""
    blocks = [_title(record), *_causes(record, verbose), *_build(record, verbose)]
    blocks += [*_results(record, verbose, brief=True), *_warnings(record), summary(record)]
    return spelled_out("\n\n".join(block for block in blocks if block))


def _results(record: Record, verbose: bool, *, brief: bool = False) -> Iterator[str]:
    yield _noted(record.notes)  # on the submission, such as a wrong file name: below the table nobody reads them
    if record.build.ok:
        yield _table(record.tests, brief)
    if nearest := nearest_to_the_limit(record.tests):
        yield textwrap.fill(nearest, WIDTH)
    yield from _phases(record.tests)
    yield from _corners(record.tests)
    yield from _printed(record.tests) if verbose else _last_words(record.tests)


def summary(record: Record) -> str:
    """Say in one sentence how many tests passed."""
    passed = sum(test.verdict is Verdict.PASSED for test in record.tests)
    total = len(record.tests)
    if not record.build.ok:
        return f"None of the {total} tests was run." if total > 1 else "The test was not run."
    if passed == total:
        return f"All {total} tests passed." if total > 1 else "The test passed."
    return f"{passed} of {total} tests passed; start with {_first_failing(record.tests)}."


def lacks_a_cause(record: Record) -> bool:
    """Whether the program was built and failed a test through its own fault, and no closer look has examined it yet."""
    look = record.closer_look
    looked = look is not None and bool(look.cause or not look.problem)
    return not looked and record.build.ok and any(test.fault is Fault.STUDENT for test in record.tests)


def _first_failing(tests: Sequence[TestRecord]) -> str:
    return next(test.name for test in tests if test.verdict is not Verdict.PASSED)


def _title(record: Record) -> str:
    """The file, the submission, the assignment and the device: each word once."""
    path, engine = record.submission.path, record.engine
    said = PurePath(path).with_suffix("").parts
    whose = "" if record.submission.id in said else f" ({record.submission.id})"
    what = "" if record.assignment in said else f" · {record.assignment}"
    device = engine.device if engine.name == "emulator" else f"{engine.name}: {engine.device}"
    return f"{path}{whose}{what} · {device}"


def _heading(record: Record) -> str:
    compiler = record.engine.facts.get("compiler", "")
    flags = f"{' '.join(record.build.flags)} (flags from {record.build.flags_from})"
    return f"{_title(record)}\n{compiler} {flags}"


def _build(record: Record, verbose: bool) -> Iterator[str]:
    log, said = record.build.log.splitlines(), " ".join(record.build.log.split())
    is_shown = any(said in " ".join(test.reason.split()) for test in record.tests)  # by `_causes`
    if said and (verbose or not (record.build.ok or is_shown)):
        shown = log if verbose else log[:20]
        more = f"\n… {len(log) - len(shown)} more lines with --verbose" if len(shown) < len(log) else ""
        yield "The compiler said:\n" + textwrap.indent("\n".join(shown), "  ") + more


def _causes(record: Record, verbose: bool) -> Iterator[str]:
    """Every cause once, with its consequence in the first test. The causes matter most, so they come first."""
    look, harmless = record.closer_look, _harmless(record)
    if harmless:
        seen = phrase("seen", test=look.test) if look is not None and harmless == look.cause else ""
        yield textwrap.fill(f"{phrase('passes', cause=harmless)}{seen}", WIDTH)
    found = [cause for cause in causes(record.tests) if cause.first.verdict is not Verdict.NOT_RUN]
    if not any(cause.known for cause in found) and (split := split_by_shape(record.tests)):
        yield textwrap.fill(split, WIDTH)
    for cause in found if verbose else found[:MAX_CAUSES]:
        whose = f"[{cause.whose}] " if cause.whose else ""
        label = f"{cause.names}: " if len(found) > 1 or not cause.known or whose else ""
        seen = (
            phrase("seen", test=look.test)
            if look is not None and look.cause and look.cause == cause.first.cause
            else ""
        )
        said, *quoted = _LINE.split(f"{label}{whose}{cause.sentence}{seen}")
        if quoted and textwrap.fill(said, WIDTH).count("\n") >= LONG_CAUSE:
            first, ends, rest = said.partition(". ")
            said, quoted = first + ends.rstrip(), [*quoted, *filter(None, [rest])]
        lines = [textwrap.fill(part, WIDTH) for part in (said, *quoted)]
        if cause.known and record.build.ok and (came := consequence(cause.first)):
            lines.append(textwrap.fill(f"{cause.first.name}: {came}", WIDTH))
        yield "\n".join(lines)
    if not verbose and len(found) > MAX_CAUSES:
        more = len(found) - MAX_CAUSES
        yield f"Other tests fail for {more} other reason{'s' if more > 1 else ''}, which --verbose lists."


def _harmless(record: Record) -> str:
    """The mistake that leads the report if tests passed in spite of it and no other mistake is known; else ''."""
    look = record.closer_look
    if look is not None and look.cause and any(look.cause in test.warnings for test in record.tests):
        return look.cause
    if any(test.cause for test in record.tests):
        return ""
    warnings = (warning for test in record.tests for warning in test.warnings)
    return next((warning.removeprefix(BUT) for warning in warnings if warning.startswith(BUT)), "")


def _table(tests: Sequence[TestRecord], brief: bool) -> str:
    """A line for each test; `brief` leaves out columns without any value."""
    floors = any(test.floor is not None for test in tests)
    rows = [(*_row(test), *(_floor_cells(test) if floors else ())) for test in tests]
    headers = ["test", "shape", "verdict", "wrong values", "max error", "wall s", "GPU ms", "speedup"]
    headers += ["TFLOP/s", "GB/s", "of floor"] if floors else []
    kept = [place for place in range(len(headers)) if place != 3 or any(row[place] != "-" for row in rows)]
    if brief:
        kept = [place for place in kept if any(row[place] != "-" for row in rows)]
    aligned = ["left" if place < 3 else "right" for place in kept]
    table = tabulate(
        [[row[place] for place in kept] for row in rows],
        headers=[headers[place] for place in kept],
        tablefmt="simple",
        colalign=aligned,
        disable_numparse=True,
    )
    return "\n".join([table, *_not_run(tests)])


def _not_run(tests: Sequence[TestRecord]) -> Iterator[str]:
    """Say why tests were not run, once for all tests with the same reason."""
    left: dict[str, list[str]] = {}
    for test in tests:
        if test.verdict is Verdict.NOT_RUN:
            left.setdefault(test.reason, []).append(test.name)
    for reason, names in left.items():
        listed = ", ".join(names) if len(names) < 4 else f"{names[0]} to {names[-1]}"
        yield textwrap.fill(f"{listed}: {reason}", WIDTH)


def _phases(tests: Sequence[TestRecord]) -> Iterator[str]:
    """The GPU time of each phase, if the assignment has phases and their times were measured."""
    names = list(dict.fromkeys(name for test in tests for name in test.phases_ms))
    rows = [
        (test.name, *(_number(test.phases_ms.get(name), "{:,.4f}") for name in names), _number(test.gpu_ms, "{:,.4f}"))
        for test in tests
        if test.phases_ms
    ]
    if rows:
        headers = ("ms of GPU time", *names, "total")
        aligned = ["left"] + ["right"] * (len(names) + 1)
        table = tabulate(rows, headers=headers, tablefmt="simple", colalign=aligned, disable_numparse=True)
        yield f"{table}\nA kernel's name decides its phase (`phases` in assignment.yaml). Times: the graded run."


def nearest_to_the_limit(tests: Sequence[TestRecord]) -> str:
    """The errors of the tensor that is closest to its tolerance or exceeds it most; '' if tolerances do not depend on a
    plain implementation."""
    found = [(test.name, each) for test in tests for each in test.precision]
    if not found:
        return ""
    name, nearest = max(found, key=lambda pair: pair[1].share)
    return f"Closest to its tolerance: {name}, {nearest}."


def _corners(tests: Sequence[TestRecord]) -> Iterator[str]:
    for test in tests:
        if test.corners:
            yield "\n\n".join("\n".join(corner_lines(test.name, corner)) for corner in test.corners)


def corner_lines(test: str, corner: CornerRecord) -> Iterator[str]:
    """An output tensor's corner, got and expected side by side, like a first debug print."""
    rows, columns = len(corner.expected), len(corner.expected[0])
    where = f" of {corner.unit}" if corner.unit else ""
    yield f"{test}: {corner.tensor}{where}, first {rows} rows and {columns} columns: got | expected"
    for number, expected in enumerate(corner.expected):
        got = corner.got[number] if number < len(corner.got) else ()
        left = "".join(map(_word, got)) if got else f"{'not written':>{_WORD * columns}}"
        yield f"{left}  |{''.join(map(_word, expected))}"


def _word(value: float) -> str:
    digits = 10 if value.is_integer() and abs(value) < 1e9 else 4
    return f"{value:{_WORD}.{digits}g}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _row(test: TestRecord) -> tuple[str, ...]:
    words = test.verdict.words
    return (
        test.name,
        shape_words(test.shape),
        words if test.verdict in (Verdict.PASSED, Verdict.NOT_RUN) else words.upper(),
        _number(test.wrong_elements if test.verdict is Verdict.WRONG_ANSWER else None, "{:,}"),
        _number(test.max_error, "{:.1e}"),
        _number(test.wall_s, "{:.2f}"),
        _number(test.gpu_ms, "{:,.3f}") + ("!" if test.timing_refused else ""),
        _number(test.speedup, "{:,.0f}x"),
    )


def _floor_cells(test: TestRecord) -> tuple[str, str, str]:
    """Achieved rates, computed from the least possible work and traffic, and how near the time is to the floor."""
    if test.floor is None:
        return "-", "-", "-"
    rates = _number(test.floor.tflops, "{:.2f}"), _number(test.floor.gbytes_per_s, "{:,.0f}")
    return *rates, _percent(test.floor.share)


def _percent(share: float | None) -> str:
    """Format how near a time is to the floor: 100 % is as fast as the GPU can be."""
    return "-" if share is None else f"{share:.1%}"


def _printed(tests: Sequence[TestRecord]) -> Iterator[str]:
    """The output of failing programs, each text once."""
    seen: dict[str, list[str]] = {}
    for test in tests:
        if test.verdict is not Verdict.PASSED and test.output.strip():
            seen.setdefault(test.output.strip()[-2000:], []).append(test.name)
    for output, names in seen.items():
        yield f"{', '.join(names)} printed:\n" + textwrap.indent(output, "      ")


def _last_words(tests: Sequence[TestRecord]) -> Iterator[str]:
    """The first line and the last lines that the first program without an output file printed: usually, the error that
    stopped it."""
    silent = next((test for test in tests if test.verdict is Verdict.NO_OUTPUT and test.output.strip()), None)
    if silent is not None:
        lines = [line[:MAX_LINE] for line in silent.output.strip().splitlines()]
        if len(lines) > MAX_LAST_WORDS:
            lines = [lines[0], "…", *lines[-MAX_LAST_WORDS:]]
        yield f"{silent.name} printed:\n" + textwrap.indent("\n".join(lines), "      ")


def _warnings(record: Record) -> Iterator[str]:
    seen: dict[str, tuple[str, list[str]]] = {}
    look, harmless = record.closer_look, alike(_harmless(record))
    for test in record.tests:
        for warning in test.warnings:
            if not harmless or alike(warning.removeprefix(BUT)) != harmless:  # `_causes` shows it
                seen.setdefault(alike(warning), (warning, []))[1].append(test.name)
    lines = [
        _hung(f"warning ({names[0]}{' and others' if len(names) > 1 else ''}): {text}") for text, names in seen.values()
    ]
    lines += [_hung(f"flag, for a person to check: {flag}") for flag in record.flags]
    lines += [_noted([record.hidden_inputs, *_looked(look, record.tests)])]
    yield "\n".join(filter(None, lines))


def _noted(notes: Iterable[str]) -> str:
    return "\n".join(_hung(f"note: {note}") for note in notes if note)


def _hung(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="      ")


def _looked(look: CloserLookRecord | None, tests: Sequence[TestRecord]) -> Iterator[str]:
    """The result of the closer look, if neither the look nor the output's values revealed a cause."""
    if look is None or look.cause or any(test.cause for test in tests):
        return
    if any(warning.startswith(BUT) for test in tests for warning in test.warnings):
        return
    if look.problem:
        passed = all(test.verdict is Verdict.PASSED for test in tests)
        why = "to find races and other faults that a test can pass with" if passed else "to find a cause"
        yield f"{look.test} was run again {why}, but not to its end ({look.problem.rstrip('.')})."
    elif any(test.name == look.test and test.kernels for test in tests):
        wrong = any(test.verdict is Verdict.WRONG_ANSWER for test in tests)
        so = ", so the mistake is probably in what the program computes" if wrong else ""
        yield (
            f"{look.test} was run again with checks ({look.seconds:.1f} s), which found no race, no access out "
            f"of bounds and no read of memory that nothing has written{so}."
        )


def _score(record: Record) -> str:
    rows = [
        (part.part, "not measured" if part.points is None else f"{part.points:g}", f"{part.max:g}", _how(part.how))
        for part in record.parts
    ]
    table = tabulate(rows, headers=("score", "points", "of", "how"), tablefmt="simple", disable_numparse=True)
    measured = [part for part in record.parts if part.points is not None]
    points, most = sum(part.points or 0 for part in measured), sum(part.max for part in measured)
    if record.practice:
        closing = (
            f"Practice score: {points:g} of {most:g} points for the tests that ran. "
            "There is no final total: that needs all graded testcases."
        )
    elif record.infrastructure_failed:
        closing = (
            f"So far {points:g} of {most:g} points; no total, since a test could not be judged, through no fault "
            "of yours."
        )
    elif record.scores.total is None:
        closing = f"So far {points:g} of {most:g} points; no total, since a part of the score was not measured."
    else:
        missing = [part.part for part in record.parts if part.points is None]
        later = f" ({', '.join(missing)} not entered yet)" if missing else ""
        closing = f"Total: {record.scores.total:g} of {most:g}{later}."
    return f"{table}\n\n{closing}"


def _how(text: str) -> str:
    return textwrap.fill(text.removeprefix("not measured: "), 66)


def _notes(record: Record) -> Iterator[str]:
    timed = next((test for test in record.tests if test.baseline), None)
    if timed is not None and timed.baseline is not None:
        text = (
            f"Speedups are over the sequential program's computing time; for {timed.name}, {timed.baseline.description}"
        )
        yield textwrap.fill(text, WIDTH)
    repeated = [test for test in record.tests if test.timing is not None]
    if repeated:
        first = repeated[0]
        assert first.timing is not None
        text = (
            f"GPU times of {first.name}{' and others' if len(repeated) > 1 else ''} are medians of repeated runs, "
            f"{first.timing.rule}; `grader explain RECORD.json` shows each."
        )
        yield textwrap.fill(text, WIDTH)
    floored = next((test.floor for test in record.tests if test.floor is not None), None)
    if floored is not None:
        yield textwrap.fill(
            "The floor is a lower bound on the time that the GPU needs: the largest of FLOPs, exponentials and bytes, "
            "each divided by its peak rate.",
            WIDTH,
        )
