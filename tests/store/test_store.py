"""The store: what is in it stays, once, whatever happens to the grader, the disk or the file."""

import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.base.errors import MachineFault, UsageError
from grader.base.names import student_id
from grader.base.verdict import Verdict
from grader.records.record import Record
from grader.store import HandIn, State, Store, check_store, export_store, import_files, open_store, schema, vacuum_store
from grader.store.rows import Points, compressed, decompressed
from tests.support.command_line import grader
from tests.support.records import made_record, made_test


def keep(store: Store, record: Record, conditions: str = "c", **facts: object) -> int:
    handed = {"assignment": record.assignment, "student": record.submission.id, "sha256": record.submission.sha256}
    number = store.add_submission(HandIn(**(handed | {"path": "p"} | facts)))  # type: ignore[arg-type]
    store.add_record(number, conditions, record)
    return number


def test_a_record_comes_back_from_a_copy_of_an_open_store_as_it_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "class.sqlite"
    with open_store(path, create=True) as store:
        keep(store, made_record("zoë 🦊"), files=(("hw4.cu", b"int main() {}"),))
        shutil.copy(path, tmp_path / "copy.sqlite")
    with open_store(tmp_path / "copy.sqlite") as store:
        (attempt,) = store.attempts("hw4")
        assert attempt.record == made_record("zoë 🦊")
        assert (attempt.student.id, attempt.number) == ("zoë 🦊", 1)
        assert store.sources(attempt.submission) == (("hw4.cu", b"int main() {}"),)


def test_others_on_the_machine_cannot_read_a_new_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.sqlite", create=True):
        pass
    assert (tmp_path / "s.sqlite").stat().st_mode & 0o007 == 0


def test_attempts_are_numbered_in_the_order_they_were_handed_in(tmp_path: Path) -> None:
    def of(sha: str) -> Record:
        record = made_record()
        return record.model_copy(update={"submission": record.submission.model_copy(update={"sha256": sha})})

    with open_store(tmp_path / "s", create=True) as store:
        keep(store, of("b" * 64), handed_in=datetime(2026, 11, 22, tzinfo=UTC))
        keep(store, of("a" * 64), handed_in=datetime(2026, 11, 20, tzinfo=UTC))
        assert [(attempt.number, attempt.sha256[0]) for attempt in store.attempts("hw4")] == [(1, "a"), (2, "b")]


def test_practice_never_takes_the_place_of_a_result_on_the_graded_testcases(tmp_path: Path) -> None:
    with open_store(tmp_path / "s", create=True) as store:
        keep(store, made_record(practice=True, created="2026-11-20T00:00:00+00:00"), "practice")
        (attempt,) = store.attempts("hw4")
        assert attempt.record.practice
        keep(store, made_record(total=90.0), "graded")
        keep(store, made_record(practice=True), "practice")
        (attempt,) = store.attempts("hw4")
        assert (attempt.record.practice, attempt.record.scores.total) == (False, 90.0)


def test_results_under_the_conditions_asked_for_last_count(tmp_path: Path) -> None:
    with open_store(tmp_path / "s", create=True) as store:
        number = keep(store, made_record(total=90.0), "cuda.rules of the course.grader")
        keep(store, made_record("bob", total=50.0), "rules of the course")
        keep(store, made_record(total=10.0), "cuda.rules that were tried out.grader")
        assert (tried := store.kept(number, "cuda")) is not None and tried.record.scores.total == 10
        for _ in range(2):
            kept = store.kept(number, "cuda.rules of the course")
            assert kept is not None
            store.bring_forward(kept)
        totals = {attempt.student.id: attempt.record.scores.total for attempt in store.attempts("hw4")}
        assert totals == {"alice": 90.0, "bob": 50.0}
        assert check_store(store) == []


def test_a_machines_fault_never_hides_a_good_record(tmp_path: Path) -> None:
    broken = made_record(tests=[made_test("t01", Verdict.GRADER_ERROR)])
    with open_store(tmp_path / "s", create=True) as store:
        number = keep(store, broken)
        assert (first := store.kept(number, "c")) is not None and first.state is State.FAULTED
        keep(store, made_record())
        store.add_record(number, "c", broken.model_copy(update={"created": "2026-11-22T00:00:00+00:00"}))
        assert (good := store.kept(number, "c")) is not None and good.state is State.FAILED
        assert not next(store.attempts("hw4")).record.infrastructure_failed


def test_other_conditions_are_another_grading(tmp_path: Path) -> None:
    with open_store(tmp_path / "s", create=True) as store:
        number = keep(store, made_record(), conditions="emulator")
        assert store.kept(number, "cuda") is None and store.kept(number, "emul") is None


def test_points_are_entered_all_or_none(tmp_path: Path) -> None:
    with open_store(tmp_path / "s", create=True) as store:
        store.set_points("hw4", [Points("alice", "report", 8, "clear")])
        wrong = Points("bob", "report", None, "")  # type: ignore[arg-type]
        with pytest.raises(Exception, match="NOT NULL"):
            store.set_points("hw4", [Points("alice", "report", 9, ""), wrong])
        assert store.points("hw4") == {"alice": {"report": Points("alice", "report", 8, "clear")}}


def test_one_grader_at_a_time_grades_into_a_store_while_others_read_it(tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import sys\nfrom pathlib import Path\nfrom grader.store import open_store\n"
        f"with open_store(Path({str(path)!r}), create=True) as store, store.one_grader():\n"
        "    print('grades', flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"grades\n"
    with open_store(path) as store:
        with (
            pytest.raises(UsageError, match=rf"Process {other.pid} on .* is grading into the store"),
            store.one_grader(),
        ):
            pass
        assert store.counts()["records"] == 0
        (tmp_path / "link").symlink_to(path)
        with (
            open_store(tmp_path / "link") as linked,
            pytest.raises(UsageError, match="is grading"),
            linked.one_grader(),
        ):
            pass
        other.kill()
        other.communicate()
        with store.one_grader():
            pass
        (tmp_path / "second name").hardlink_to(path)
        with pytest.raises(UsageError, match="hard link"), store.one_grader():
            pass


def test_the_lock_of_a_strangers_store_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "grades").write_text("precious")
    (tmp_path / "s-grader").symlink_to(tmp_path / "grades")
    with open_store(tmp_path / "s", create=True) as store, pytest.raises(UsageError, match="cannot be opened"):
        store.one_grader().__enter__()
    assert (tmp_path / "grades").read_text() == "precious"


def test_a_journal_that_names_a_file_is_refused_since_sqlite_would_delete_that_file(tmp_path: Path) -> None:
    path, precious = tmp_path / "s", tmp_path / "grades"
    with open_store(path, create=True) as store:
        store.add_student("alice")
    precious.write_text("precious")
    name, magic = str(precious).encode(), bytes.fromhex("d9d505f920a163d7")
    head = magic + struct.pack(">IIIII", 0, 7, path.stat().st_size // 4096, 512, 4096)
    end = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    (tmp_path / "s-journal").write_bytes(head.ljust(512, b"\0") + end)
    (tmp_path / "link").symlink_to(path)
    for each in (path, tmp_path / "link"):
        with pytest.raises(UsageError, match="s-journal names another file"), open_store(each):
            pass
    assert precious.read_text() == "precious"
    (tmp_path / "s-journal").unlink()
    with open_store(path) as store:
        assert store.students() == {"alice"}


def test_two_processes_storing_the_same_class_at_once_leave_every_record_once(tmp_path: Path) -> None:
    path = tmp_path / "s"
    script = (
        "import sys\nfrom pathlib import Path\nfrom grader.store import open_store\n"
        "from tests.store.test_store import keep\nfrom tests.support.records import made_record\n"
        f"with open_store(Path({str(path)!r}), create=True) as store:\n"
        "    for number in range(40): keep(store, made_record(f'student{number}'))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    with open_store(path) as store:
        assert store.counts() == {"students": 40, "submissions": 40, "records": 40, "manual_points": 0}
        assert check_store(store) == []


def test_several_graders_may_make_a_store_at_the_same_moment(tmp_path: Path) -> None:
    def make(path: Path) -> dict[str, int]:
        start.wait()
        with open_store(path, create=True) as store:
            return store.counts()

    start = threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        for number in range(50):
            made = list(pool.map(make, [tmp_path / str(number)] * 4))
            assert [counts["records"] for counts in made] == [0, 0, 0, 0]


def test_an_export_imported_twice_into_a_new_store_gives_the_same_class_once(tmp_path: Path) -> None:
    with open_store(tmp_path / "a", create=True) as store:
        store.add_student("alice", nickname="fox")
        keep(store, made_record(), days_late=1, penalty=0.1, files=(("hw4.cu", b"\xff\x00"),))
        store.set_points("hw4", [Points("alice", "report", 8, "clear")])
        export_store(store, tmp_path / "export.jsonl")
        original = list(store.attempts("hw4"))
    with open_store(tmp_path / "b", create=True) as copy:
        assert import_files(copy, [tmp_path / "export.jsonl"]) == (1, 0)
        assert import_files(copy, [tmp_path / "export.jsonl"]) == (0, 1)
        assert list(copy.attempts("hw4")) == original
        assert copy.points("hw4")["alice"]["report"].points == 8
        assert copy.sources(1) == (("hw4.cu", b"\xff\x00"),)


def test_a_class_with_a_name_of_unprintable_bytes_comes_back_from_its_export(tmp_path: Path) -> None:
    student = student_id(os.fsdecode(b"\xff" * 255))
    with open_store(tmp_path / "a", create=True) as store:
        keep(store, made_record(student), student=student, path=f"class/{student}", days_late=2_900_000)
        keep(store, made_record("zoe"))
        export_store(store, tmp_path / "export.jsonl")
    with open_store(tmp_path / "b", create=True) as copy:
        assert import_files(copy, [tmp_path / "export.jsonl"]) == (2, 0)
        assert copy.students() == {student, "zoe"}


def test_an_export_has_every_column_even_one_that_this_grader_does_not_know(tmp_path: Path) -> None:
    with open_store(tmp_path / "a", create=True) as store:
        store.add_student("alice")
        store.execute("ALTER TABLE students ADD COLUMN pronouns TEXT NOT NULL DEFAULT 'she'")
        export_store(store, tmp_path / "a.jsonl")
    assert '"pronouns": "she"' in (tmp_path / "a.jsonl").read_text()


def test_an_older_backup_takes_back_neither_points_nor_lateness(tmp_path: Path) -> None:
    with open_store(tmp_path / "s", create=True) as store:
        due = datetime(2026, 11, 20, tzinfo=UTC)
        keep(store, made_record(), days_late=2, penalty=0.2, handed_in=due)
        store.set_points("hw4", [Points("alice", "report", 3, "")])
        store.execute("UPDATE manual_points SET entered = '2026-11-20T00:00:00+00:00'")
        export_store(store, tmp_path / "backup.jsonl")
        keep(store, made_record(), days_late=0, penalty=0.0, handed_in=due)
        store.set_points("hw4", [Points("alice", "report", 9, "after the complaint")])
        import_files(store, [tmp_path / "backup.jsonl"])
        assert store.points("hw4")["alice"]["report"].points == 9
        (attempt,) = store.attempts("hw4")
        assert (attempt.days_late, attempt.penalty) == (0, 0.0)


def test_lateness_and_names_come_with_an_import_where_nothing_was_known(tmp_path: Path) -> None:
    with open_store(tmp_path / "a", create=True) as store:
        store.add_student("alice", nickname="fox")
        keep(store, made_record(), days_late=1, penalty=0.1, handed_in=datetime(2026, 11, 20, tzinfo=UTC))
        export_store(store, tmp_path / "a.jsonl")
    (tmp_path / "r.json").write_text(made_record().model_dump_json(by_alias=True))
    with open_store(tmp_path / "b", create=True) as store:
        import_files(store, [tmp_path / "r.json", tmp_path / "a.jsonl"])
        (attempt,) = store.attempts("hw4")
        assert (attempt.days_late, attempt.penalty, attempt.student.nickname) == (1, 0.1, "fox")


@pytest.mark.parametrize("text", ["nonsense", '{"schema": "grader-store-1"}\n{"kind": "record"}\n', '{"a": 1}'])
def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with open_store(tmp_path / "s", create=True) as store, pytest.raises(UsageError, match=r"r\.json"):
        import_files(store, [tmp_path / "r.json"])


def test_a_missing_store_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no store at .*none\.sqlite"), open_store(tmp_path / "none.sqlite"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and they are longer than a header of SQLite, which has a hundred bytes." * 3)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"notes\.txt is damaged or is not a store"), open_store(path, create=True):
        pass
    assert path.read_bytes() == before


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE bookmarks (url)")
    with pytest.raises(UsageError, match="database of another program"), open_store(tmp_path / "other.db"):
        pass


def test_a_store_of_a_newer_grader_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True):
        pass
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    with pytest.raises(UsageError, match="newer grader"), open_store(path):
        pass


def test_a_damaged_store_is_told_and_what_can_be_read_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        for number in range(60):
            keep(store, made_record(f"student{number:02}"))
        vacuum_store(store)
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 8192] = b"\xaa" * 8192
    path.write_bytes(content)
    with pytest.raises(UsageError, match="its pages are not in order"), open_store(path):
        pass
    with open_store(path, damaged=True) as store:
        assert check_store(store)
        counts, _ = export_store(store, tmp_path / "saved.jsonl")
    assert counts["student"] + counts.get("record", 0) > 0
    assert json.loads((tmp_path / "saved.jsonl").read_text().splitlines()[0]) == {"schema": "grader-store-1"}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE manual_points SET points = 9e999",
        "UPDATE submissions SET penalty = -9e999",
        "UPDATE submissions SET penalty = -1e308",
        "UPDATE submissions SET penalty = 1.5",
        """UPDATE records SET json = replace(json, '"correctness":60.0', '"correctness":1e999')""",
    ],
)
def test_a_number_of_a_foreign_store_that_is_none_is_one_sentence(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        keep(store, made_record())
        store.set_points("hw4", [Points("alice", "report", 8, "")])
    with sqlite3.connect(path) as raw:
        assert raw.execute(change).rowcount == 1
    said = grader("gradebook", "--store", path, "--assignment", "hw4")
    assert said.code and "The store" in said.err and "bug" not in said.err, said.err


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ("UPDATE students SET name = hex(zeroblob(10000))", True),
        ("UPDATE submissions SET path = hex(zeroblob(10000))", False),
        ("UPDATE submissions SET handed_in = '2026-01-01'", False),
        ("UPDATE submissions SET handed_in = '0001-01-01T00:00:00+14:00'", True),
        ("UPDATE submissions SET days_late = 9223372036854775807", False),
        ("UPDATE students SET page = '../../escaped' || student", True),
        ("UPDATE students SET nickname = char(27) || '[2J' || char(8238)", False),
        ("""UPDATE records SET json = replace(json, '"created":"2', '"created":"never 2')""", True),
        ("UPDATE records SET json = 'null'", True),
        ("UPDATE sources SET name = '../../' || name", False),
        ("UPDATE sources SET content = (SELECT content FROM sources WHERE name = 'bomb')", False),
    ],
)
def test_a_strangers_store_harms_no_command(tmp_path: Path, change: str, refused: bool) -> None:
    """Each ends with a sentence, prints no control characters, and writes where it was asked to."""
    path, place = tmp_path / "s", tmp_path / "a/b/c"
    place.mkdir(parents=True)
    with open_store(path, create=True) as store:
        keep(
            store,
            made_record(),
            files=(("hw4.cu", b"int main() {}"), ("bomb", bytes(200 << 20 if "bomb" in change else 1))),
        )
        keep(store, made_record("bob"))
    with sqlite3.connect(path) as raw:
        assert raw.execute(change).rowcount >= 1
    words = ("--store", path, "--assignment", "hw4")
    codes = []
    for command in ("gradebook", "leaderboard", "explain alice", "diff alice bob", "site site", "store export"):
        rest = {"store export": (path, "e.jsonl"), "explain alice": words[:2]}.get(command, words)
        said = grader(*command.split(), *rest, cwd=place)
        codes.append(said.code)
        assert "bug" not in said.err and not {"\x1b", "\u202e"} & {*said.out, *said.err}, said
    assert (2 in codes) is refused, codes
    assert (place / "e.jsonl").stat().st_size < 1 << 20
    assert not [path for path in tmp_path.rglob("*escaped*") if not path.is_relative_to(place)]


def test_a_changed_record_is_found(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        keep(store, made_record())
    with sqlite3.connect(path) as raw:
        raw.execute("""UPDATE records SET json = replace(json, '"correctness":60.0', '"correctness":6.0')""")
    with open_store(path) as store:
        assert check_store(store) == ["Record 1 was changed after it was stored: its SHA-256 is not the stored one."]


def test_a_record_of_a_newer_grader_is_told_and_not_dropped(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        number = keep(store, made_record())
    with sqlite3.connect(path) as raw:
        raw.execute("""UPDATE records SET json = replace(json, '"practice":false', '"practice":false,"later":1')""")
    with open_store(path) as store:
        with pytest.raises(UsageError, match=r"does not understand: at later, Extra inputs .* or a newer one"):
            list(store.attempts("hw4"))
        with pytest.raises(UsageError, match="does not understand"):
            store.kept(number, "c")


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER INSERT ON students BEGIN SELECT 1; END",
        "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "ALTER TABLE submissions ADD COLUMN more TEXT AS (hex(zeroblob(1000000)))",
    ],
)
def test_a_store_that_computes_by_itself_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True):
        pass
    with sqlite3.connect(path) as raw:
        raw.execute(change)
    with pytest.raises(UsageError, match="other tables than a store of this grader"), open_store(path):
        pass


def test_a_page_that_leads_back_to_itself_is_found_before_it_is_followed(tmp_path: Path) -> None:
    """Every child of an inner page of `records` is that page: a count would visit 4 pages to the power of 20."""
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        for number in range(60):
            keep(store, made_record(f"student{number:02}"))
    with sqlite3.connect(path) as raw:
        (root,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'records'").fetchone()
        (size,) = raw.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    page = content[(root - 1) * size : root * size]
    assert page[0] == 5  # an inner page
    for place in range(int.from_bytes(page[3:5])):
        cell = int.from_bytes(page[12 + 2 * place : 14 + 2 * place])
        page[cell : cell + 4] = root.to_bytes(4)
    page[8:12] = root.to_bytes(4)
    content[(root - 1) * size : root * size] = page
    path.write_bytes(content)
    with pytest.raises(UsageError, match="its pages are not in order"), open_store(path):
        pass


@pytest.mark.parametrize(
    "change", ["handed_in = 'not a date'", "path = CAST(x'ff' AS TEXT), student = CAST(x'ff' AS TEXT)"]
)
def test_a_row_that_no_store_writes_is_the_stores_fault(tmp_path: Path, change: str) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        keep(store, made_record())
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE submissions SET {change}")
        raw.execute("UPDATE students SET student = (SELECT student FROM submissions)")
    with pytest.raises(UsageError, match="is damaged or is not a store"), open_store(path) as store:
        list(store.attempts("hw4"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder"), open_store(tmp_path, create=True):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be created"), open_store(tmp_path / "file" / "s", create=True):
        pass
    with pytest.raises(UsageError, match="cannot be written"):
        Store(Path("/proc/class.sqlite"))


def test_a_full_disk_stops_with_a_sentence_and_keeps_what_was_stored(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        keep(store, made_record("first"))
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = store.execute("PRAGMA page_count").fetchone()[0]
        store.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to be full: SQLITE_FULL
        with pytest.raises(MachineFault, match=r"is full .*continues where it stopped"):
            for number in range(50):
                keep(store, made_record(f"more{number}"))
    with open_store(path) as store:
        assert check_store(store) == []
        assert "first" in [attempt.student.id for attempt in store.attempts("hw4")]


def test_an_export_never_replaces_its_own_store(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with open_store(path, create=True) as store:
        keep(store, made_record())
        for target in (path, tmp_path / "s-journal"):
            with pytest.raises(UsageError, match="is the store itself, which its export would replace"):
                export_store(store, target)
        with pytest.raises(UsageError, match="is a folder, expected a file"):
            export_store(store, tmp_path)
    with open_store(path) as store:
        assert check_store(store) == []


STUDENT = {"kind": "student", "student": "a", "name": "", "nickname": "", "section": "", "page": "p" * 22}
SUBMISSION = {"kind": "submission", "assignment": "hw4", "student": "a", "sha256": "0" * 64, "path": "p"} | {
    "handed_in": None, "days_late": 0, "penalty": 0.0, "sources": {"hw4.cu": "eA=="},
}  # fmt: skip
POINTS = {"kind": "points", "assignment": "hw4", "student": "a", "part": "report", "points": 8.0, "comment": ""}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (STUDENT | {"student": 3}, "student.student: Input should be a valid string"),
        (STUDENT | {"name": {}}, "student.name"),
        (STUDENT | {"page": "../x/0123456789abcdef"}, "student.page"),
        (STUDENT | {"pronouns": "she"}, "student.pronouns: Extra inputs are not permitted"),
        (SUBMISSION | {"sources": {"../../evil": "eA=="}}, "'../../evil' is not the name of a file in a submission"),
        (SUBMISSION | {"sources": []}, "submission.sources"),
        (SUBMISSION | {"sources": {"a": "!!!"}}, "base64"),
        (SUBMISSION | {"days_late": 10**30}, "submission.days_late"),
        (SUBMISSION | {"penalty": float("nan")}, "submission.penalty: Input should be a finite number"),
        (SUBMISSION | {"handed_in": "never"}, "never"),
        (POINTS | {"points": "x"}, "points.points"),
        ({"kind": "record", "student": [1], "json": "{}"}, "record.student"),
        ({"kind": "other"}, "'other'"),
        ([], "this is not a row"),
    ],
)
def test_a_row_that_no_store_exported_is_refused_with_its_line(tmp_path: Path, row: object, says: str) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in ({"schema": "grader-store-1"}, STUDENT, row)))
    with open_store(tmp_path / "s", create=True) as store:
        with pytest.raises(UsageError) as caught:
            import_files(store, [file])
        assert "e.jsonl, line 3: this is not a row of a store's export: " in str(caught.value)
        assert says in str(caught.value)
        assert store.counts()["students"] == 1


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text("[" * 100_000)
    with open_store(tmp_path / "s", create=True) as store, pytest.raises(UsageError, match="neither an export"):
        import_files(store, [tmp_path / "e.json"])


@pytest.mark.parametrize("name", ["../out.cu", "a/../../out.cu", "/tmp/out.cu"])
def test_files_of_a_store_stay_in_their_folder(name: str) -> None:
    with pytest.raises(zlib.error, match="leads out of the submission"):
        decompressed(compressed([(name, b"")]))
