"""Stores and records that come from elsewhere: what they say reaches neither the terminal nor another folder."""

import sqlite3
import time
from pathlib import Path

import pytest

from grader.commands import classroom
from grader.commands.cli import main
from grader.course.assignment import load_assignment
from grader.programs.submission import read_submission
from grader.records.record import write_records
from tests.support.records import made_record, made_test

ESCAPE = "\x1b]0;owned\x07"


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out + said.err


def hostile_store(path: Path) -> Path:
    record = made_record(f"alice{ESCAPE}", tests=[made_test("t01")]).model_copy(update={"notes": (ESCAPE,)})
    classroom.keep([record], path)
    return path


@pytest.mark.parametrize("command", ["explain", "leaderboard", "gradebook"])
def test_no_command_prints_a_control_character(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "explain":
        record = made_record(tests=[made_test("t01")]).model_copy(
            update={"notes": (ESCAPE,), "grader": {"version": ESCAPE}}
        )
        write_records([record], tmp_path / "record.json")
        _, said = run("explain", str(tmp_path / "record.json"), capsys=capsys)
    else:
        store = hostile_store(tmp_path / "class.sqlite")
        with sqlite3.connect(store) as raw:
            raw.execute("UPDATE students SET name = ?, nickname = ?", (ESCAPE, ESCAPE))
        _, said = run(command, "--store", str(store), capsys=capsys)
    assert said and "\x1b" not in said and "\x07" not in said


def test_a_store_cannot_choose_the_folder_of_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = hostile_store(tmp_path / "class.sqlite")
    with sqlite3.connect(store) as raw:
        raw.execute("UPDATE students SET page = '../../../../outside'")
    code, said = run("site", str(tmp_path / "deep/er/site"), "--store", str(store), capsys=capsys)
    assert code == 2 and "outside" in said
    assert not list(tmp_path.rglob("outside"))


def test_includes_are_followed_once_each(tmp_path: Path) -> None:
    """Twenty include lines took 23 s: each read all programs of the folders on the way to the header."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for number in range(8):
        (folder / f"old{number}.cu").write_bytes(b"x" * (2 << 20))
    text = "".join(f'#include "lib/h{number % 40}.h"\n' for number in range(4000))
    (tmp_path / "hw4.cu").write_text(f"{text}int main() {{ return 0; }}\n")
    began = time.process_time()
    read_submission(tmp_path / "hw4.cu", load_assignment("hw4"))
    assert time.process_time() - began < 5
