"""What a person can ask about a result afterwards: why, whether it repeats, how two differ, who resembles whom."""

import re
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

from grader.base.errors import UsageError
from grader.base.paths import course_root
from grader.classes import similarity
from grader.commands import complaints
from grader.course.assignment import Assignment
from grader.course.coherence import suite_of
from grader.records.record import Record, write_records
from grader.records.rescore import rescored
from grader.store import HandIn, Store, open_store
from grader.store.rows import Points
from tests.support.command_line import grader, run
from tests.support.records import made_record, made_test


def keep(store: Store, record: Record, sha256: str, day: int, *, days_late: int = 0, penalty: float = 0.0) -> None:
    submission = record.submission.model_copy(update={"sha256": sha256})
    number = store.add_submission(
        HandIn(
            "hw4",
            record.submission.id,
            sha256,
            "class/alice",
            datetime(2026, 11, day, tzinfo=UTC),
            days_late,
            penalty,
            (("hw4.cu", b"int main() {}"),),
        )
    )
    store.add_record(number, "c", record.model_copy(update={"submission": submission}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "class.sqlite"
    with open_store(found, create=True) as store:
        keep(store, made_record("alice", speedups=[10.0]), "a" * 64, 20)
        keep(store, made_record("alice", speedups=[20.0]), "b" * 64, 21, days_late=1, penalty=0.1)
        store.set_points("hw4", [Points("alice", "report", 8, "clear")])
    return found


def test_a_difference_of_two_students_shows_their_sources(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store(path) as store:
        handed = HandIn("hw4", "bob", "c" * 64, "class/bob", files=(("hw4.cu", b"int main() {\n}\n\x1b[31m"),))
        store.add_record(store.add_submission(handed), "c", made_record("bob"))
    run("diff", "alice", "bob", "--store", path)
    text = capsys.readouterr().out
    assert "--- hw4.cu, alice" in text and "+int main() {" in text and "\x1b" not in text.replace("\\x1b", "")
    run("diff", "alice", "alice", "--store", path)
    assert "int main" not in capsys.readouterr().out


def test_a_difference_explains_points_that_were_computed_again(
    path: Path, capsys: pytest.CaptureFixture[str], hw4: Assignment
) -> None:
    with open_store(path) as store:
        number = store.find("hw4", "alice", "b" * 64)
        assert number is not None
        kept = store.kept(number, "c")
        assert kept is not None
        again = rescored(kept.record, hw4, suite_of(hw4), measures_time=True)
        store.add_record(number, "c", again.model_copy(update={"practice": False}))
    run("diff", "alice~1", "alice", "--store", path)
    text = capsys.readouterr().out
    assert "alice: points were computed again from stored measurements on" in text
    assert "another rules: 000000000000" in text
    run("diff", "alice~2", "alice", "--store", path, code=2)
    assert "1 earlier result" in capsys.readouterr().err


def test_an_explanation_has_lateness_manual_points_and_the_sum(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("explain", "alice", "--store", path)
    text = capsys.readouterr().out
    assert "attempt 2 of 2, handed in 2026-11-21T00:00+00:00, 1 day late, which costs 10%" in text
    assert "report: 8 (clear)" in text
    assert "(60 + 8) x (1 - 0.1) = 61.2" in text
    assert "There is no total: speedup, occupancy missing." in text


def test_an_attempt_is_named_by_its_number_and_wrong_ones_are_told(path: Path) -> None:
    with open_store(path) as store:
        assert complaints.attempt_named(store, "hw4", "alice").number == 2
        assert complaints.attempt_named(store, "hw4", "alice#1").record.tests[0].speedup == 10.0
        with pytest.raises(UsageError, match="alice has attempts 1 to 2, not 3"):
            complaints.attempt_named(store, "hw4", "alice#3")
        with pytest.raises(UsageError, match=r"'bob' is not a file, and .* no student with that id"):
            complaints.attempt_named(store, "hw4", "bob")


def test_an_id_that_looks_like_an_attempts_is_an_id_first(path: Path) -> None:
    with open_store(path) as store:
        keep(store, made_record("x#2"), "d" * 64, 1)
        assert complaints.attempt_named(store, "hw4", "x#2").student.id == "x#2"
        assert complaints.attempt_named(store, "hw4", "x#2#1").number == 1


def test_two_results_are_compared_whether_files_or_in_the_store(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records([made_record("carol", speedups=[40.0], device="NVIDIA A100")], tmp_path / "carol.json")
    run("diff", "alice#1", tmp_path / "carol.json", "--store", path)
    text = capsys.readouterr().out
    assert "another GPU: NVIDIA H200 and NVIDIA A100" in text
    assert "100 ms" in text and "25 ms" in text


def test_a_rerun_grades_the_stored_files_and_changes_nothing_in_the_store(path: Path) -> None:
    seen = []

    def again(folder: Path, record: Record) -> Record:
        seen.append((folder / "hw4.cu").read_bytes())
        return made_record("alice", tests=[made_test("t21", gpu_ms=50.0 + len(seen), speedup=20.0)])

    with open_store(path) as store:
        text = complaints.compare_again(store, "hw4", "alice", again, twice=True)
        assert store.counts()["records"] == 2
    assert seen == [b"int main() {}"] * 2
    headings = [line.split("  ")[-1].strip() for line in text.splitlines() if "now" in line]
    assert headings == ["now", "second run now"]
    assert [line.split() for line in text.splitlines() if "report" in line] == [["report", "8", "8"]] * 2
    assert "51 ms" in text and "52 ms" in text


def test_renaming_and_reformatting_do_not_hide_a_copy_and_the_template_does_not_make_one() -> None:
    reference = course_root() / "reference/hw4"
    template = (course_root() / "student_template/hw4/hw4.cu").read_text()
    original = (reference / "flash2.cu").read_text()
    copied = original.replace("float", "float ").replace("int ", "int  ").replace("row", "line")
    hand_ins = {
        "alice": original,
        "bob": "// my own work\n" + copied,
        "carol": (reference / "naive.cu").read_text(),
        "dave": template,
        "erin": template,
    }
    pairs = similarity.resembling(hand_ins, [template]).pairs
    assert {pairs[0].first, pairs[0].second} == {"alice", "bob"}
    assert pairs[0].share > 0.9
    assert all(pair.share < 0.5 for pair in pairs[1:])
    assert not any({pair.first, pair.second} == {"dave", "erin"} for pair in pairs)
    assert "".join(piece.text for piece in pairs[0].first_text) in (original, hand_ins["bob"])


def test_many_copies_are_one_group_however_large_a_part_of_the_class() -> None:
    original = (course_root() / "reference/hw4/flash2.cu").read_text()
    copies = {f"copy{number:02}": original.replace("row", f"row{number}") + f"// {number}\n" for number in range(6)}
    copies["copy04"] += next((course_root() / "reference/softmax").glob("*.cu")).read_text()[:1500]
    models = [course_root() / "reference" / name for name in ("hw4/naive.cu", "hw4/tiled.cu")]
    models += sorted((course_root() / "reference/matmul").glob("*.cu"))[:2]
    others = {f"own{number}": path.read_text() for number, path in enumerate(models)}
    found = similarity.resembling(copies | others, [])
    (group,) = [group for group in found.groups if "copy00" in group.members]
    assert sorted(group.members) == sorted(copies)
    assert group.shares[0] == 1.0 and 0.8 <= group.least < 1.0
    assert group.widest is not None and group.widest.second == "copy04"
    assert not any({pair.first, pair.second} <= copies.keys() for pair in found.pairs), "15 pairs are one group"
    assert "copy05" in similarity.render(found)


def test_copies_in_python_and_in_headers_of_any_suffix_are_found(tmp_path: Path) -> None:
    python = (course_root() / "reference/half/flash.py").read_text()
    kernel = (course_root() / "reference/half/naive.cu").read_text()
    files = {
        "ann/half.py": python, "bob/half.py": re.sub(r"\bgradients\b", "derivatives", python),
        "cid/half.cu": '#include "kernel.hxx"', "cid/kernel.hxx": kernel, "dan/half.cu": kernel,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    said = grader("similarity", tmp_path, "--assignment", "half")
    pairs = {tuple(re.findall(r"\b(ann|bob|cid|dan)\b", line)) for line in said.out.splitlines()}
    assert {("ann", "bob"), ("cid", "dan")} <= pairs, said.out


@pytest.mark.usefixtures("hurried_room")
def test_a_hand_in_made_to_take_hours_is_left_out_and_named() -> None:
    kernel = "__global__ void kernel(float *out, const float *in) { out[threadIdx.x] = in[blockIdx.x] * 2.0f; }\n"
    found = similarity.resembling({"alice": kernel * 3, "bob": kernel * 3, "mallory": 'R"(' * 600_000}, [])
    assert found.left_out == ("mallory",)
    assert [(pair.first, pair.second) for pair in found.pairs] == [("alice", "bob")]
    assert "too long: mallory." in similarity.render(found)


def test_similarity_of_a_class_is_a_table_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (course_root() / "reference/hw4/flash2.cu").read_text()
    for student in ("alice", "bob <b>"):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "hw4.cu").write_text(source)
    (tmp_path / "class/carol").mkdir()
    run("similarity", tmp_path / "class", "--html", tmp_path / "pairs.html")
    text = capsys.readouterr().out
    assert "alice" in text and "100%" in text
    assert "1 left out" in text
    page = (tmp_path / "pairs.html").read_text()
    assert "bob &lt;b&gt;" in page and "<mark>" in page
    for student in ("dave", "erin"):
        (tmp_path / "class" / student).mkdir()
        (tmp_path / "class" / student / "hw4.cu").write_text(source)
    run("similarity", tmp_path / "class", "--html", tmp_path / "pairs.html")
    assert "alice, bob <b>, dave, erin" in capsys.readouterr().out
    page = (tmp_path / "pairs.html").read_text()
    assert "Group of 4" in page and "alice, bob &lt;b&gt;, dave, erin" in page
    assert page.count('<div class="pair">') == 1, "one pair of the six is shown"


def test_store_commands_say_what_they_did(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("store", "check", path)
    assert "is sound: 1 students, 2 submissions, 2 records, 1 manual points." in capsys.readouterr().out
    run("store", "export", path, tmp_path / "out.jsonl")
    assert "1 student, 2 submissions, 2 records, 1 points written" in capsys.readouterr().out
    run("store", "import", tmp_path / "new.sqlite", tmp_path / "out.jsonl")
    assert "2 records added" in capsys.readouterr().out
    run("store", "vacuum", path)
    run("leaderboard", "--store", path, "--format", "csv", "--names", "id")
    assert capsys.readouterr().out.splitlines()[-1].startswith("1,alice,20.00,NVIDIA H200")
    run("gradebook", "--store", path, "--columns", "id,points")
    assert capsys.readouterr().out == "id,points\nalice,61.2\n"
    (tmp_path / "points.csv").write_text("id,report\nalice,10\n")
    run("points", "import", tmp_path / "points.csv", "--store", path)
    run("site", tmp_path / "site", "--store", path)
    assert (tmp_path / "site/public/index.html").is_file()
    run("store", "check", tmp_path / "points.csv", code=2)
    assert "points.csv is damaged" in capsys.readouterr().err


def test_comparisons_of_one_hand_in_have_one_limit_after_which_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n".join(f"float a{n} = b[{n} * i + {n}] * c[{n}]; if (a{n} > {n}) d += a{n};" for n in range(40))
    texts = {name: body.replace("b[", f"{name}[") for name in ("ann", "bob", "eve")}
    texts["mallory"] = body + "\n{}" * 20_000
    monkeypatch.setattr(similarity, "_PAIRS_CPU_S", 0.05)
    monkeypatch.setattr(similarity, "_ALIKE", 2.0)  # pairs, no groups
    found = similarity.resembling(texts, [])
    assert "mallory" in found.left_out and len(set(found.left_out)) == len(found.left_out)


@pytest.mark.parametrize("student", ["..", ".", "../../x", "e" * 300])
def test_a_store_from_elsewhere_unpacks_into_its_own_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, student: str
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    attempt = Mock(submission=1, student=Mock(id=student))
    store = Mock(sources=lambda submission: (("hw4.cu", b"x"), ("sub/a.cu", b"y")))
    with complaints.unpacked(store, attempt) as folder:
        assert folder.resolve().parent.parent == tmp_path / "tmp"
        assert (folder / "sub/a.cu").read_bytes() == b"y"
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("names", [("hw4.cu", "hw4.cu/x.cu"), ("n" * 300,)])
def test_stored_files_that_cannot_be_unpacked_are_that_submissions_problem(names: tuple[str, ...]) -> None:
    store = Mock(sources=lambda submission: tuple((name, b"") for name in names))
    with (
        pytest.raises(UsageError, match="stored files of bob cannot be unpacked"),
        complaints.unpacked(store, Mock(student=Mock(id="bob"))),
    ):
        pass
