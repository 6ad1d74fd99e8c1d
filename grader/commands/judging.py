"""The commands on the judge's own machine, `serve` and `tokens`; `judge_client` has those that talk to a judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.base.csv_table import csv_text
from grader.base.errors import UsageError
from grader.base.names import say, student_id
from grader.base.paths import shown


@dataclass(frozen=True)
class ServeOptions:
    """The options of `grader serve`."""

    store: Path | None = None
    roster: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    engine: str = "auto"
    jobs: int | None = None
    best: bool | None = None
    cluster: str | None = None


def serve(assignment: str | None, options: ServeOptions) -> None:
    """Serve a judge until a signal ends it."""
    try:
        from grader.judge import server
    except ImportError as error:
        raise UsageError(f"`grader serve` needs {error.name}: pip install 'cuda-homework-grader[judge]'.") from error
    from grader.base.progress import shown_progress
    from grader.classes.batch import Which
    from grader.classes.batch.roster import read_roster
    from grader.commands.predicting import predictor
    from grader.course.assignment import chosen_assignment
    from grader.judge.lanes import lanes_for, prepare
    from grader.judge.office import Judge
    from grader.judge.tokens import STAFF, have_tokens, make_token
    from grader.sandbox import memory_share
    from grader.store import default_store, open_store

    rules = chosen_assignment(assignment)
    roster = read_roster(options.roster) if options.roster else {}
    if options.cluster not in (None, "slurm"):
        raise UsageError(f"There is no cluster {options.cluster!r}: --cluster takes slurm.")
    reserved = server.reserve(options.host, options.port)
    lanes = lanes_for(rules, options.engine, options.jobs, cluster=options.cluster is not None)
    predict = predictor([lane.setup.engine.device for lane in lanes])
    for lane in lanes:
        lane.predict = predict
    path = options.store or default_store(rules.name)
    with open_store(path, create=True) as store, store.one_grader():
        address = f"http://{options.host}:{options.port}"
        if STAFF not in have_tokens(store):
            link = f"{address}/login#{make_token(store, STAFF)}"
            say(f"The staff's link, shown once (`grader tokens --rotate staff` makes another): {link}", flush=True)
        with shown_progress() as progress:
            prepare(rules, lanes, progress)
        which = Which.chosen(rules.name, options.best)
        judge = Judge(path, rules, lanes, roster=roster, which=which)
        say(f"{rules.title}: {address}, with {', '.join(lane.name for lane in lanes)}; Ctrl-C ends it.", flush=True)
        with memory_share.announced(1 if options.cluster else len(lanes), 0):
            server.serve(judge, reserved)


def tokens(
    roster: Path | None, store: Path | None, assignment: str | None, *, rotate: Sequence[str], revoke: Sequence[str]
) -> str:
    """Make the tokens that are missing, and return the new ones as CSV. `rotate` and `revoke` name students, or
    `staff`."""
    from grader.classes.batch.roster import enter_roster, read_roster
    from grader.course.assignment import chosen_assignment
    from grader.judge.tokens import STAFF, have_tokens, make_token, revoke_token
    from grader.store import default_store, open_store

    path = store or default_store(chosen_assignment(assignment).name)
    students = read_roster(roster) if roster else {}
    with open_store(path, create=True) as opened:
        enter_roster(opened, students)
        known, have = opened.students(), have_tokens(opened)
        asked = [STAFF if word == "staff" else student_id(word) for word in (*rotate, *revoke)]
        if unknown := sorted(set(asked) - known - {STAFF}):
            raise UsageError(f"There is no student {', '.join(unknown)} in {shown(path)}: name them in the --roster.")
        for who in asked[len(rotate) :]:
            revoke_token(opened, who)
        new = [*asked[: len(rotate)]] if asked else [one for one in (STAFF, *students) if one not in have]
        rows = [("id", "name", "email", "token")]
        for who in dict.fromkeys(new):
            student = students.get(who)
            words = (student.name or "", student.email or "") if student else ("", "")
            rows.append((who or "staff", *words, make_token(opened, who)))
    return csv_text(rows)
