"""The site of a class.

    OUT/public/index.html                leaderboard and statistics; students without a nickname stay anonymous
    OUT/public/students/PAGE/            one student's pages, without a public link: PAGE is 128 random bits
    OUT/assistants/index.html            who needs attention, and the gradebook, with links to students' pages
    OUT/assistants/links.csv             id, name, mail address and page of every student, for a mail merge

Any web server can serve OUT/public as it is, and a browser can open it from disk; OUT/assistants is for the staff. The
site is built next to OUT and then moved into place, so a reader never sees half of it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grader.base.csv_table import csv_text
from grader.base.errors import MachineFault, UsageError
from grader.base.names import printable_name
from grader.base.paths import shown
from grader.base.verdict import Verdict
from grader.classes.attention import by_reason, needs_attention
from grader.classes.batch.policy import Which
from grader.classes.final_points import Absent, Line, absent, gradebook, standing, students_only
from grader.course.assignment import title_of
from grader.report.leaderboard import Board, Names, default_board, leaderboard
from grader.report.leaderboard import table as board_table
from grader.sandbox.room import Unreadable, confined
from grader.site.record_page import MAX_PAGE_BYTES, Page, PastAttempt, asset, environment, report_of
from grader.site.statistics import statistics
from grader.store import Compressed, Store, decompressed
from grader.store.rows import PAGE_NAME

_MARKER = ".grader-site"
_CONDITIONS = ("device", "driver", "date")
"""Columns of the leaderboard that become one line if all students have the same value."""


@dataclass(frozen=True)
class Built:
    """The size of the site, and notes on its data and on parts that it lacks, such as a leaderboard."""

    students: int
    pages: int
    notes: tuple[str, ...]


def build_site(
    store: Store,
    assignment: str,
    out: Path,
    *,
    which: Which = Which.LATEST,
    metric: str | None = None,
    mix: bool = False,
    notes: Sequence[str] = (),
) -> Built:
    """Write the site to `out`, in place of an older one there; `notes` are for the assistants' page. Raises UsageError
    when something else is in the way."""
    _refuse_strangers(out)
    lines = gradebook(store, assignment, which)
    if not lines:
        raise UsageError(f"The store {shown(store.path)} has no graded submission of {assignment}: nothing to show.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
            new = Path(scratch) / "site"
            built = _write(store, assignment, lines, new, metric, mix, notes)
            old = Path(scratch) / "old"
            if out.exists():
                out.rename(old)
            new.rename(out)
    except OSError as error:
        raise MachineFault(f"The site could not be written to {shown(out)}: {error.strerror}.") from error
    return built


def _refuse_strangers(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()) and not (out / _MARKER).exists():
        raise UsageError(
            f"{shown(out)} holds files that are not a site of this grader and would be lost: name an empty or new "
            "folder."
        )
    if out.exists() and not out.is_dir():
        raise UsageError(f"{shown(out)} is a file, expected a folder for the site.")


def _write(
    store: Store, assignment: str, lines: Sequence[Line], out: Path, metric: str | None, mix: bool, said: Sequence[str]
) -> Built:
    notes = list(said)
    boards = {names: _board(lines, metric, names, mix, notes) for names in (Names.NICKNAME, Names.ID)}
    numbers = statistics(students_only(lines))
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    common: dict[str, Any] = {"title": title_of(assignment), "statistics": numbers, "written": written}
    public, staff = out / "public", out / "assistants"
    for folder in (public, staff):
        folder.mkdir(parents=True)
        for name in ("style.css", "site.js"):
            (folder / name).write_text(asset(name), encoding="utf-8")
    (out / _MARKER).write_text("Written by `grader site`, which replaces all of it.\n")
    _page(public / "index.html", "public.html.j2", board=shown_board(boards[Names.NICKNAME]), **common)
    others = absent(store, assignment)
    parts, missing = _parts(lines, others)
    _page(
        staff / "index.html",
        "assistants.html.j2",
        board=shown_board(boards[Names.ID]),
        lines=lines,
        parts_of_all=parts,
        sections=any(line.attempt.student.section for line in lines),
        late=any(line.attempt.days_late for line in lines),
        missing_of_all=missing,
        notes=said,
        absent=others,
        concerns=by_reason(needs_attention(lines, others)),
        graded={line.attempt.student.id for line in lines},
        **common,
    )
    (staff / "links.csv").write_text(_links(lines), encoding="utf-8")
    pages = sum(_student(store, assignment, line, public, written, notes) for line in lines)
    return Built(len(lines), pages + 2, tuple(dict.fromkeys(notes)))


def _parts(lines: Sequence[Line], others: Sequence[Absent]) -> tuple[list[str], list[str]]:
    """Return the parts for which some student has points, and the parts for which none has. They come from all
    records, since the rules may have changed between gradings."""
    points: list[Mapping[str, float | None]] = [*(line.parts for line in lines), *(one.parts for one in others)]
    parts = dict.fromkeys(part for each in points for part in each)
    known = [part for part in parts if any(each.get(part) is not None for each in points)]
    return known, [part for part in parts if part not in known]


def _board(lines: Sequence[Line], metric: str | None, names: Names, mix: bool, notes: list[str]) -> Board | None:
    """The leaderboard. If no fair ranking is possible, return None and add the reason to `notes`."""
    try:
        if metric is None:
            board, why = default_board(lines, names=names, mix_devices=mix)
            notes += [f"The leaderboard is by {board.metric}: {why}"] if why else []
            return board
        return leaderboard(lines, metric=metric, names=names, mix_devices=mix)
    except UsageError as error:
        notes.append(f"The pages have no leaderboard: {error}")
        return None


def shown_board(board: Board | None) -> dict[str, object] | None:
    """The values that the template of a board needs; None without a board."""
    if board is None:
        return None
    headers, rows = board_table(board)
    columns = dict(zip(headers, zip(*rows, strict=True), strict=True))
    students = [place for place, row in enumerate(board.rows) if row.rank is not None or not row.mark]
    same = {
        name: columns.pop(name)[students[0]]
        for name in _CONDITIONS
        if name in columns and len({columns[name][place] for place in students}) == 1
    }
    return {
        "subject": board.subject,
        "unit": {"speedup": "×"}.get(board.metric, ""),
        "columns": list(columns),
        "rows": [(row.mark, cells) for row, cells in zip(board.rows, zip(*columns.values(), strict=True), strict=True)],
        "same": same,
        "ranked": sum(row.rank is not None for row in board.rows),
        "unranked": board.unranked,
    }


def _student(store: Store, assignment: str, line: Line, public: Path, written: str, notes: list[str]) -> int:
    """Write a student's pages, one per attempt, and return their number. index.html is the attempt that counts. A page
    that cannot be drawn is left out, with a note."""
    page, student = line.attempt.student.page, line.attempt.student.id
    if not PAGE_NAME.fullmatch(page):  # it becomes a part of a path, and the store may come from elsewhere
        raise UsageError(f"The store names a page {printable_name(page[:80])!r}: it was not written by this grader.")
    folder = public / "students" / page
    folder.mkdir(parents=True)
    entered = store.points(assignment).get(student, {})

    def attempts() -> Iterator[Line]:  # read again for each use: hundreds of records of some MB are too many to keep
        return (standing(attempt, entered) for attempt in store.attempts(assignment, student))

    history = [_past(each, line.attempt.submission) for each in attempts()]
    pages = 0
    for past, then in zip(history, attempts(), strict=True):
        try:
            drawn = _drawn_student(then, store.compressed_sources(then.attempt.submission), history, written)
        except Unreadable as unreadable:
            notes.append(f"The page of {printable_name(student)}'s attempt {past.number} is left out: it {unreadable}.")
            continue
        (folder / past.page).write_text(drawn, encoding="utf-8")
        pages += 1
    return pages


def _past(line: Line, counts: int) -> PastAttempt:
    """An attempt's row; `counts` is the submission that counts."""
    attempt, tests = line.attempt, line.attempt.record.tests
    page = "index.html" if attempt.submission == counts else f"attempt-{attempt.number}.html"
    passed = sum(test.verdict is Verdict.PASSED for test in tests)
    return PastAttempt(attempt.number, page, attempt.handed_in, passed, len(tests), line.points)


def _drawn_student(line: Line, sources: Compressed, history: Sequence[PastAttempt], written: str) -> str:
    """The page of an attempt; without its sources if they cannot be drawn within the room's limits. Raises Unreadable
    if the record cannot be, either."""
    try:
        return draw_student(line, sources, history, written, title_of(line.attempt.record.assignment))
    except Unreadable:
        if not sources:
            raise
        return _drawn_student(line, (), history, written)


@confined(cpu_s=20, memory_bytes=2 << 30, answer_bytes=2 * MAX_PAGE_BYTES)
def draw_student(line: Line, sources: Compressed, history: Sequence[PastAttempt], written: str, title: str) -> Page:
    """The page of an attempt of a student whose attempts are `history`."""
    report = report_of(line.attempt.record, decompressed(sources), line, history, title)
    return environment().get_template("student.html.j2").render(root="../..", report=report, written=written)


def _page(path: Path, template: str, root: str = ".", **values: Any) -> None:
    """Write a page. `root` is the path from it to the folder that holds style.css."""
    path.write_text(environment().get_template(template).render(root=root, **values), encoding="utf-8")


def _links(lines: Sequence[Line]) -> str:
    students = [line.attempt.student for line in students_only(lines)]
    pages = [(one.id, one.name, one.email, f"students/{one.page}/index.html") for one in students]
    return csv_text([("id", "name", "email", "page"), *pages])
