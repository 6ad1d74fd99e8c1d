"""The judge's ledger: every step is one transaction, and no submission gets two results from one run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.classes.batch.roster import enter_roster, read_roster
from grader.judge.fairness import in_order
from grader.judge.ledger import Ledger, Stage, Upload, digest_of
from grader.judge.tokens import STAFF, make_token, person_of, revoke_token
from grader.store import HandIn, Store, compressed, open_store
from tests.support.records import made_record

SOURCES = (("hw4.cu", b"int main() {}"),)
FILES = compressed(SOURCES), digest_of(SOURCES)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "class.sqlite", create=True) as opened:
        yield opened


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store, "hw4")


def finished(ledger: Ledger, upload: Upload, *, then_timing: bool = False) -> None:
    record = made_record(upload.student)
    hand_in = HandIn("hw4", upload.student, record.submission.sha256, "hw4.cu", files=SOURCES)
    ledger.finish(upload, hand_in, ("conditions", record), seconds=1.0, then_timing=then_timing)


def claimed(ledger: Ledger, stage: Stage = Stage.VERDICT) -> Upload:
    upload = ledger.claim(stage)
    assert upload is not None
    return upload


def states(ledger: Ledger, student: str) -> list[str]:
    return [upload.state.value for upload in reversed(ledger.of_student(student))]


def test_a_newer_submission_takes_the_place_of_the_one_that_waits_and_none_of_the_running_one(ledger: Ledger) -> None:
    ledger.receive("alice", *FILES)
    claimed(ledger)
    ledger.receive("alice", *FILES)
    ledger.receive("bob", *FILES)
    ledger.receive("alice", *FILES)
    assert states(ledger, "alice") == ["running", "replaced", "waiting"]
    assert claimed(ledger).student == "bob"
    assert ledger.claim(Stage.VERDICT) is None, "alice has one running"


def test_the_same_request_sent_twice_is_one_submission(ledger: Ledger) -> None:
    first, second = (ledger.receive("alice", *FILES, "a key") for _ in range(2))
    assert first == second
    assert ledger.receive("bob", *FILES, "a key").id != first.id
    assert Ledger(ledger.store, "hw5").receive("alice", *FILES, "a key").id != first.id


def test_a_newer_submission_replaces_an_older_one_also_after_the_clock_was_set_back(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (10_000.0, 5_000.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        ledger.receive("alice", *FILES)
    assert states(ledger, "alice") == ["replaced", "waiting"]
    monkeypatch.setattr("time.time", lambda: 5_001.0)
    assert ledger.received_within("alice", 3600.0) == [5_000.0], "10,000 is not within this hour"


def test_tokens_and_ids_survive_a_spreadsheet_and_a_command_line(
    ledger: Ledger, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that begins with "-" is an option to a command, and a formula to a spreadsheet."""
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "-" * size)
    assert make_token(store, STAFF)[0].isalnum()
    assert ledger.receive("alice", *FILES).id.isalnum()


def test_what_ran_when_the_judge_was_killed_runs_again_and_a_late_result_of_it_is_not_stored_twice(
    ledger: Ledger, store: Store
) -> None:
    ledger.receive("alice", *FILES)
    before = claimed(ledger)
    assert ledger.recover() == 1
    again = claimed(ledger)
    assert (again.number, again.tries) == (before.number, 1)
    finished(ledger, again)
    finished(ledger, before)
    assert states(ledger, "alice") == ["done"]
    assert store.counts()["records"] == 1
    assert ledger.recover() == 0


@pytest.mark.parametrize("how", ["a restart", "a fault of the machine"])
def test_what_comes_back_into_the_queue_gives_its_place_to_a_newer_submission(ledger: Ledger, how: str) -> None:
    ledger.receive("alice", *FILES)
    running = claimed(ledger)
    ledger.receive("bob", *FILES)
    ledger.receive("alice", *FILES)
    ledger.prioritise(running, -1)
    ledger.recover() if how == "a restart" else ledger.requeue(running, "It is tried again.")
    assert states(ledger, "alice") == ["replaced", "waiting"]
    assert [place.student for place in in_order(ledger.places(Stage.VERDICT))] == ["bob", "alice"]
    ledger.prioritise(ledger.of_student("alice")[0], 0)
    assert ledger.places(Stage.VERDICT)[-1].tag == 0.0, "the old place"


def test_what_the_staff_runs_again_waits_next_to_the_students_own(ledger: Ledger) -> None:
    ledger.receive("alice", *FILES)
    finished(ledger, claimed(ledger))
    ledger.rerun(ledger.of_student("alice")[0])
    for _ in range(2):
        ledger.receive("alice", *FILES)
    assert states(ledger, "alice") == ["waiting", "replaced", "waiting"]


def test_verdicts_come_first_and_a_newer_submission_is_timed_in_place_of_an_older_one(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.receive("alice", *FILES)
        finished(ledger, claimed(ledger), then_timing=True)
    assert states(ledger, "alice") == ["replaced", "waiting"]
    assert claimed(ledger, Stage.TIMING).number == ledger.of_student("alice")[0].number


def test_a_late_submission_replaces_none_that_was_on_time(ledger: Ledger) -> None:
    ledger.receive("alice", *FILES)
    deadline = ledger.of_student("alice")[0].received
    ledger.late = lambda student, received: (1, 0.2) if received > deadline else (0, 0.0)
    ledger.receive("alice", *FILES)
    ledger.receive("alice", *FILES)
    assert states(ledger, "alice") == ["waiting", "replaced", "waiting"]
    for _ in range(2):
        finished(ledger, claimed(ledger), then_timing=True)
    assert states(ledger, "alice") == ["waiting", "replaced", "waiting"], "both are timed, too"


def test_an_old_submission_that_the_staff_reruns_takes_no_place_of_a_newer_one(ledger: Ledger) -> None:
    ledger.receive("alice", *FILES)
    finished(ledger, claimed(ledger))
    ledger.receive("alice", *FILES)
    finished(ledger, claimed(ledger), then_timing=True)
    ledger.rerun(ledger.of_student("alice")[-1])
    finished(ledger, claimed(ledger), then_timing=True)
    assert states(ledger, "alice") == ["waiting", "waiting"]


def test_a_failed_transaction_leaves_no_half_of_a_result(ledger: Ledger, store: Store) -> None:
    ledger.receive("alice", *FILES)
    upload = claimed(ledger)
    with pytest.raises(AttributeError):
        ledger.finish(upload, HandIn("hw4", "alice", "0" * 64, "hw4.cu"), ("conditions", None), seconds=1.0)  # type: ignore[arg-type]
    assert store.counts()["submissions"] == 0
    assert states(ledger, "alice") == ["running"]


def test_the_staff_pauses_moves_bans_withdraws_and_reruns(ledger: Ledger) -> None:
    first, second = ledger.receive("alice", *FILES), ledger.receive("bob", *FILES)
    ledger.set_switch("paused", 1)
    assert ledger.claim(Stage.VERDICT) is None
    ledger.set_switch("paused", 0)
    ledger.prioritise(second, 10)
    finished(ledger, claimed(ledger))
    assert states(ledger, "bob") == ["done"]
    ledger.set_switch("banned:alice", 1)
    assert ledger.claim(Stage.VERDICT) is None and ledger.banned() == ["alice"]
    ledger.withdraw(first)
    with pytest.raises(UsageError, match="only a submission that waits or runs"):
        ledger.withdraw(first)
    ledger.rerun(ledger.of_student("bob")[0])
    assert claimed(ledger).again


def test_the_store_holds_no_token_and_knows_only_the_newest_of_each(ledger: Ledger, store: Store) -> None:
    ledger.receive("alice", *FILES)
    first, second = make_token(store, "alice"), make_token(store, "alice")
    staff = make_token(store, STAFF)
    assert person_of(store, first) is None
    found = person_of(store, second)
    assert found is not None and found.student == "alice" and not found.is_staff
    assert (person_of(store, staff) or found).is_staff
    revoke_token(store, "alice")
    for forged in (second, "", ".", second[:-1], second + "x", f"{staff.partition('.')[0]}.x", "é", "x" * 10**6, "\0"):
        assert person_of(store, forged) is None
    dump = "".join(store._db.iterdump())
    assert staff.partition(".")[2] not in dump and second.partition(".")[2] not in dump


def test_another_roster_corrects_the_lateness_of_what_is_stored(ledger: Ledger, store: Store) -> None:
    first = ledger.receive("alice", *FILES)
    finished(ledger, claimed(ledger))
    ledger.receive("alice", *FILES)
    finished(ledger, claimed(ledger))
    asked: list[tuple[str, object]] = []

    def late(student: str, received: float) -> tuple[int, float]:
        asked.append((student, received))
        return 2, 0.2

    ledger.late = late
    ledger.correct_lateness()
    assert asked == [("alice", first.received)], "the same files keep their first time"
    assert [(attempt.days_late, attempt.penalty) for attempt in store.attempts("hw4")] == [(2, 0.2)]
    ledger.late = lambda student, received: (9, 1.0)
    assert {upload.days_late for upload in ledger.of_student("alice")} == {2}
    assert ledger.receive("bob", *FILES).days_late == 9, "not judged yet"


def test_a_roster_replaces_what_its_columns_say_and_nothing_else(store: Store, tmp_path: Path) -> None:
    def nicknames_after(roster: str) -> list[str]:
        (tmp_path / "roster.csv").write_text(roster)
        enter_roster(store, read_roster(tmp_path / "roster.csv"))
        return [row[0] for row in store.execute("SELECT nickname FROM students ORDER BY student")]

    assert nicknames_after("id,nickname\nalice,fox\nbob,owl\n") == ["fox", "owl"]
    assert nicknames_after("id,name\nalice,Alice\n") == ["fox", "owl"]
    assert nicknames_after("id,nickname\nalice\nbob,\n") == ["", ""], "students may want to be anonymous again"
