"""The commands for a whole class: each function is one command, from its arguments to the text it prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import course_root, shown
from grader.base.progress import shown_progress
from grader.base.workers import cores
from grader.classes import attention
from grader.classes import similarity as similar
from grader.classes.batch import Found, Outcome, Policy, Setup, Which, find_class, grade_class, is_class, view
from grader.classes.batch.desk import first_fault
from grader.classes.batch.handins import describe
from grader.classes.batch.late import lateness
from grader.classes.batch.roster import Student, read_roster
from grader.classes.cluster import grade_on_slurm
from grader.classes.cluster.elsewhere import engine_of_jobs
from grader.classes.comparable import mixed
from grader.classes.final_points import MODEL_PREFIX, Line, absent, gradebook, students_only
from grader.classes.points_file import read_points
from grader.classes.second_draw import second_draw
from grader.commands import complaints, report_files
from grader.commands.emulated import emulating
from grader.commands.handout import build_handout
from grader.commands.rechecking import recheck_leaders
from grader.commands.submissions import grade_paths
from grader.course.assignment import Assignment, assignment_names, chosen_assignment, load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.gradescope import build_bundle, grade_there
from grader.gradescope.harness import write
from grader.programs.engine import Engine, select_engines
from grader.programs.oracle import ensure
from grader.programs.submission import read_submission
from grader.records.record import Record, write_records
from grader.report import explain as explanation
from grader.report import gradebook as gradebooks
from grader.report import leaderboard as boards
from grader.report.gradescope import message
from grader.report.leaderboard import Board, Names
from grader.site import build_site
from grader.site.record_page import similarity_page
from grader.store import (
    HandIn,
    Store,
    check_store,
    default_store,
    export_store,
    import_files,
    open_store,
    vacuum_store,
)
from grader.store.exchange import conditions_of


@dataclass(frozen=True)
class ClassOptions:
    """The options of `grade` that concern classes."""

    store: Path | None = None
    roster: Path | None = None
    rerun: str | None = None
    best: bool = False
    as_class: bool = False
    jobs: int | None = None
    cluster: str | None = None

    @property
    def policy(self) -> Policy:
        """Which attempts count and which are graded again."""
        return Policy(Which.BEST if self.best else Which.LATEST, self.rerun)


@dataclass(frozen=True)
class BoardOptions:
    """What is ranked, and how students are named."""

    metric: str = "speedup"
    tests: str | None = None
    names: str = "nickname"
    top: int | None = None
    mix_gpus: bool = False


def wanted(paths: Sequence[Path], assignment: str | None, options: ClassOptions) -> bool:
    """Whether `grade PATH...` means a class."""
    rules = chosen_assignment(assignment, paths[0])
    if options.as_class or any(is_class(path, rules) for path in paths):
        return True
    if options.roster is not None or options.rerun is not None or options.cluster is not None:
        raise UsageError(
            f"--roster, --rerun and --cluster are for classes, and {shown(paths[0])} is one submission: give the "
            "folder that holds them all, or add --class."
        )
    return False


def hand_ins(paths: Sequence[Path], rules: Assignment, options: ClassOptions) -> tuple[list[Found], list[str]]:
    """All submissions below `paths`, and notes on files that were left out."""
    found: list[Found] = []
    notes: list[str] = []
    for path in paths:
        if path.is_dir() and (options.as_class or is_class(path, rules)):
            members, aside = find_class(path, rules)
            is_reference = path.resolve() == rules.reference_folder.resolve()
            found += [one for one in members if one.path.is_file() or not is_reference]  # wrong/ is not a solution
            notes += aside
        elif path.exists():
            found.append(describe(path, rules))
        else:
            raise UsageError(f"{shown(path)} does not exist: give a submission, or the folder of a class.")
    references = rules.reference_folder.resolve()
    marked = [
        replace(one, student=MODEL_PREFIX + one.student) if one.path.resolve().is_relative_to(references) else one
        for one in found
    ]
    return marked, notes


def grade(
    paths: Sequence[Path],
    *,
    assignment: str | None,
    tests: str | None,
    engine: str,
    arch: str | None = None,
    options: ClassOptions,
    json: Path | None = None,
    junit: Path | None = None,
) -> tuple[str, bool]:
    """Grade a class into its store, and write the records that count to `json` and `junit`. Return a summary, and
    whether everything could be judged."""
    if options.cluster not in (None, "slurm"):
        raise UsageError(f"There is no cluster {options.cluster!r}: --cluster takes slurm.")
    rules, engine = emulating(arch, chosen_assignment(assignment, paths[0]), engine)
    found, notes = hand_ins(paths, rules, options)
    roster = read_roster(options.roster) if options.roster else {}
    if missing := options.policy.unknown(found):
        raise UsageError(
            f"--rerun: no student here has the id {', '.join(sorted(missing))}; give ids as in the roster."
        )
    suite = suite_of(rules)
    engines: Sequence[Engine]
    if options.cluster is not None:
        engines = (engine_of_jobs(engine),)
    else:
        engines = select_engines(engine, rules.build.emulator_target)
    if options.cluster is None and len(engines) == 1 and not engines[0].measures_time:
        engines = tuple(engines) * (options.jobs or max(1, cores() // 2))
    elif options.jobs is not None:
        raise UsageError("--jobs is for the emulator: a GPU always runs one submission at a time.")
    cases = suite.select(tests or ("all" if engines[0].measures_time else "public"))
    files = TestcaseFiles.beside(suite)
    path = options.store or default_store(rules.name)
    with open_store(path, create=True) as store, store.one_grader():
        with shown_progress() as progress:
            ensure(cases, suite, files, progress)
        setup = Setup(rules, suite, files, cases, engines[0])
        with view.shown() as seen:
            if options.cluster is not None:
                outcome = grade_on_slurm(setup, found, store, policy=options.policy, roster=roster, view=seen)
            else:
                outcome = grade_class(setup, engines, found, store, policy=options.policy, roster=roster, view=seen)
        lines = gradebook(store, rules.name, options.policy.which)
        unjudged = _unjudged(outcome, lines, store, setup.conditions)
        notes += mixed(lines, rules.rules_sha256)
        concerns = attention.needs_attention(lines, absent(store, rules.name), unjudged)
        counting = [line.attempt.record for line in lines]
        if json is not None:
            write_records(counting, json)
        if junit is not None:
            report_files.write_junit(counting, junit)
    return summary(outcome, path, notes, concerns), not unjudged


def _unjudged(outcome: Outcome, lines: Sequence[Line], store: Store, conditions: str) -> dict[str, str]:
    """Students whose counting attempt no run could judge under these conditions, each with the first fault,
    which is from this run, or from an earlier one if this run did not grade the attempt (--rerun ID)."""
    found = dict(outcome.faulted)
    for line in lines:
        record = store.record_under(line.attempt.submission, conditions)
        if record is not None and record.infrastructure_failed:
            found.setdefault(line.attempt.student.id, first_fault(record))
    return found


def keep(records: Sequence[Record], path: Path) -> None:
    """Put records of single submissions into a store; their files' mtimes say how late they are. If the store
    already has an attempt, for example with a lateness by the roster, it keeps what it has."""
    with open_store(path, create=True) as store:
        for record in records:
            number = store.import_submission(_handed_in(record))
            store.add_record(number, conditions_of(record), record)


def _handed_in(record: Record) -> HandIn:
    graded, rules, place = record.submission, load_assignment(record.assignment), Path(record.submission.path)
    hand_in = HandIn(record.assignment, graded.id, graded.sha256, graded.path)
    if not place.exists():
        return hand_in
    handed_in = describe(place, rules).handed_in
    days, penalty = lateness(handed_in, rules.deadline, Student(graded.id))
    return replace(hand_in, handed_in=handed_in, days_late=days, penalty=penalty)


def summary(outcome: Outcome, store: Path, notes: Sequence[str], concerns: Sequence[attention.Concern]) -> str:
    """A summary of a run, for people."""
    tally = outcome.tally
    counts = ", ".join(f"{count} {what}" for what, count in tally.outcomes.most_common())
    graded = f"{tally.graded} graded now{f' ({counts})' if counts else ''}"
    before = f", {tally.graded_before}" if tally.kept else ""
    lines = [f"{tally.total} submission{'s' * (tally.total != 1)}: {graded}{before}."]
    lines += [f"note: {note}" for note in (*notes, *outcome.notes)]
    lines += [attention.render(concerns), f"Everything is in {shown(store)}."]
    return "\n".join(line for line in lines if line)


def chosen_store(store: Path | None, assignment: str | None) -> tuple[Path, str]:
    """The chosen store, and the chosen assignment in it. Raises UsageError if the choice is not clear."""
    if store is None:
        names = [assignment] if assignment else [name for name in assignment_names() if default_store(name).exists()]
        if len(names) != 1:
            raise UsageError(
                "Which store? Name one with --store: "
                + (", ".join(str(default_store(name)) for name in names) or "results/ here has none")
                + "."
            )
        store = default_store(names[0])
    with open_store(store) as opened:
        held = opened.assignments()
    if assignment is None and len(held) != 1:
        what = f"records of {', '.join(held)}: name one with --assignment" if held else "no record"
        raise UsageError(f"{shown(store)} holds {what}.")
    if assignment is not None and assignment not in held:
        raise UsageError(f"{shown(store)} holds no record of {assignment}, only of {', '.join(held) or 'nothing'}.")
    return store, assignment or held[0]


def leaderboard(
    store: Path | None, assignment: str | None, *, form: str, best: bool, options: BoardOptions, recheck: bool = False
) -> str:
    """The leaderboard of a class as text. `recheck`: recheck the candidates for a place first."""
    path, name = chosen_store(store, assignment)
    which = Which.BEST if best else Which.LATEST
    with open_store(path) as opened:
        lines = gradebook(opened, name, which)
        if recheck:
            _recheck(opened, name, lines, options)
            lines = gradebook(opened, name, which)
    board = board_of(lines, name, options)
    tell(mixed(lines, _rules_now(name)))
    return boards.render(board, form)


def tell(notes: Sequence[str]) -> None:
    """Print notes to stderr, since the output of the command may go to a file."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _rules_now(assignment: str) -> str:
    """The checksum of the assignment's current rules; '' if this course no longer has the assignment."""
    return load_assignment(assignment).rules_sha256 if assignment in assignment_names() else ""


def _recheck(store: Store, assignment: str, lines: Sequence[Line], options: BoardOptions) -> None:
    board = board_of(lines, assignment, replace(options, top=None))
    attempts = [line.attempt for line in lines]
    if not board.unchecked:
        return
    rules = load_assignment(assignment)
    engine = select_engines("auto", rules.build.emulator_target)[0]
    with shown_progress() as progress, second_draw(rules, engine, progress) as draw:
        recheck_leaders(store, attempts, board, options.top, draw)


def board_of(lines: Sequence[Line], assignment: str, options: BoardOptions) -> Board:
    """Rank a class by the options."""
    tests: tuple[str, ...] = ()
    if options.tests is not None:
        suite = suite_of(load_assignment(assignment))
        tests = tuple(case.name for case in suite.select(options.tests))
    try:
        names = Names(options.names)
    except ValueError as error:
        raise UsageError(f"--names {options.names}: choose one of {', '.join(Names)}.") from error
    return boards.leaderboard(
        lines, metric=options.metric, tests=tests, names=names, top=options.top, mix_devices=options.mix_gpus
    )


def site(out: Path, store: Path | None, assignment: str | None, *, metric: str, best: bool, mix: bool) -> str:
    """Write the pages of a class."""
    path, name = chosen_store(store, assignment)
    with open_store(path) as opened:
        which = Which.BEST if best else Which.LATEST
        notes = mixed(gradebook(opened, name, which), _rules_now(name))
        built = build_site(opened, name, out, which=which, metric=metric, mix=mix, notes=notes)
    lines = [f"{built.pages} pages of {built.students} students are in {shown(out)}."]
    lines += [f"note: {note}" for note in built.notes]
    lines.append(f"Publish {shown(out / 'public')}; {shown(out / 'assistants')} names all students and is for staff.")
    return "\n".join(lines)


def gradebook_csv(
    store: Path | None, assignment: str | None, *, form: str, columns: str, best: bool, partial: bool
) -> str:
    """The gradebook as CSV, for spreadsheets and learning platforms."""
    path, name = chosen_store(store, assignment)
    with open_store(path) as opened:
        lines = students_only(gradebook(opened, name, Which.BEST if best else Which.LATEST))
        others = absent(opened, name)
    tell(mixed(lines, _rules_now(name)))
    if concerns := attention.render(attention.needs_attention(lines, others)):
        print(concerns, file=sys.stderr)
    if form != "csv" and not partial and lines and not any(line.total is not None for line in lines):
        tell([gradebooks.all_empty(lines, form)])
    chosen = tuple(word.strip() for word in columns.split(",") if word.strip())
    title = load_assignment(name).title
    return gradebooks.render(lines, form, title=title, columns=chosen, partial=partial, absent=others)


def enter_points(file: Path, store: Path | None, assignment: str | None) -> str:
    """Enter points from a CSV file."""
    path, name = chosen_store(store, assignment)
    with open_store(path) as opened:
        entries = read_points(file, load_assignment(name), opened.students())
        opened.set_points(name, entries)
    count = len({entry.student for entry in entries})
    return f"Entered in {shown(path)}: points of {count} student{'s' * (count != 1)}."


def handout(out: Path, assignment: str | None) -> str:
    """Write the folder that students get."""
    rules = chosen_assignment(assignment)
    names = build_handout(out, rules)
    return f"{shown(out)}: {len(names)} files of {rules.name} for students; README.md there says how to begin."


def gradescope_bundle(target: Path, assignment: str | None, *, tests: str, engine: str, secret: Path | None) -> str:
    """Write the zip to upload as a Gradescope autograder."""
    names = build_bundle(target, chosen_assignment(assignment), tests=tests, engine=engine, secret=secret)
    words = f"{shown(target)}: {len(names)} files, for --tests {tests} on --engine {engine}."
    return words + (" It holds the secret that determines the hidden testcases: do not publish it." if secret else "")


def gradescope_run(root: Path, assignment: str | None, *, tests: str, engine: str) -> str:
    """Grade inside Gradescope's container, and write results.json whatever happens."""
    try:
        rules = chosen_assignment(assignment)
        suite = suite_of(rules)

        def graded(path: Path) -> Record:
            (record,) = grade_paths([path], assignment=rules.name, tests=tests, engine=engine, json=None)
            return record

        found = grade_there(root, rules, graded, lambda name: name in suite.cases and suite.cases[name].hidden)
    except Exception as error:
        found = message(f"The autograder failed. That is not your fault: please report it to the course staff. {error}")
        write(root, found)
    return f"score {found['score']:g}: {view.first_line(found['output'])}"


def explain(words: str, store: Path | None, assignment: str | None) -> str:
    """Trace every number of a student's result back to its inputs."""
    path, name = chosen_store(store, assignment)
    with open_store(path) as opened:
        return complaints.explain(opened, name, words)


def difference(first: str, second: str, store: Path | None, assignment: str | None) -> str:
    """Show two records side by side; each is a file or an id in the store."""
    with ExitStack() as opened:

        def of_class() -> tuple[Store, str]:
            path, name = chosen_store(store, assignment)
            return opened.enter_context(open_store(path)), name

        records = [complaints.record_named(words, of_class) for words in (first, second)]
    return explanation.compare(*records, headings=(first, second))


def rerun(words: str, store: Path | None, assignment: str | None, *, engine: str | None, twice: bool) -> str:
    """Grade a student's stored files again on the testcases of their record."""
    path, name = chosen_store(store, assignment)

    def grade_again(folder: Path, record: Record) -> Record:
        tests = ",".join(test.name for test in record.tests)
        chosen = engine or record.engine.name
        (again,) = grade_paths([folder], assignment=name, tests=tests, engine=chosen, json=None)
        return again

    with open_store(path) as opened:
        return complaints.rerun(opened, name, words, grade_again, twice=twice)


def similarity(folder: Path, assignment: str | None, *, top: int, html: Path | None) -> str:
    """List the submissions of a class that resemble each other."""
    rules = chosen_assignment(assignment, folder)
    found, _ = find_class(folder, rules)
    texts: dict[str, str] = {}
    left_out = []
    for one in found:
        try:
            shared = one.path.name != rules.submission.main
            submission = read_submission(one.path, rules, shared_folder=shared)
        except UsageError:
            left_out.append(one.student)
            continue
        name = one.student if one.student not in texts else f"{one.student} ({one.path.name})"
        texts[name] = similar.joined(submission.files)
    given = course_root() / "student_template" / rules.name
    template = [path.read_text(errors="replace") for path in sorted(given.rglob("*")) if path.suffix in similar.SOURCES]
    resembling = similar.resembling(texts, template, top=top)
    text = similar.render(resembling)
    if left_out:
        text += f"\n{len(left_out)} left out because they hold nothing to compare: {', '.join(left_out)}."
    if html is not None:
        report_files.write(html, similarity_page(resembling), "page")
        text += f"\nThey are side by side in {shown(html)}."
    return text


def export(store: Path, target: Path) -> str:
    """Write a store as JSON lines."""
    with open_store(store) as opened:
        counts, lost = export_store(opened, target)
    text = ", ".join(f"{count} {kind}{'' if kind == 'points' or count == 1 else 's'}" for kind, count in counts.items())
    return "\n".join([f"{text or 'nothing'} written to {shown(target)}.", *(f"LOST: {what}" for what in lost)])


def import_into(store: Path, files: Sequence[Path]) -> str:
    """Import exports and records into a store."""
    with open_store(store, create=True) as opened:
        added, known = import_files(opened, files)
    return f"{added} record{'s' * (added != 1)} added to {shown(store)}; already there: {known}."


def examine(store: Path) -> tuple[str, bool]:
    """Check a store. Return a report, and whether the store is sound."""
    with open_store(store) as opened:
        problems = check_store(opened)
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in opened.counts().items())
    if problems:
        return "\n".join(problems), False
    return f"{shown(store)} is sound: {counts}.", True


def shrink(store: Path) -> str:
    """Rewrite a store without free space."""
    with open_store(store) as opened:
        before, after = vacuum_store(opened)
    return f"{shown(store)}: {before:,} bytes before, {after:,} after."
