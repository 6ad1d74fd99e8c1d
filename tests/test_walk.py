"""Looking through folders that somebody handed in."""

from pathlib import Path

import pytest

from grader.sandbox import walk
from grader.sandbox.walk import files_below


def made(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def names_below(root: Path) -> list[str]:
    return [str(path.relative_to(root)) for path in files_below(root)]


def test_files_at_the_top_come_first_and_the_rest_by_name(tmp_path: Path) -> None:
    made(tmp_path, "b/y.cu", "b/x.cu", "a/z.cu", "a/inner/w.cu", "m.cu", "k.cu")
    assert names_below(tmp_path) == ["k.cu", "m.cu", "a/z.cu", "a/inner/w.cu", "b/x.cu", "b/y.cu"]


def test_hidden_folders_and_links_to_folders_are_not_entered(tmp_path: Path) -> None:
    made(tmp_path, ".git/config", "src/a.cu", ".hidden.cu")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    (tmp_path / "round").symlink_to(tmp_path)
    assert names_below(tmp_path) == [".hidden.cu", "link", "round", "src/a.cu"]


def test_what_lies_too_deep_is_left_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "DEEPEST", 1)
    made(tmp_path, "a.cu", "one/b.cu", "one/two/c.cu")
    assert names_below(tmp_path) == ["a.cu", "one/b.cu"]


def test_no_more_folders_are_read_when_enough_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_ENTRIES", 3)
    made(tmp_path, "a/1", "b/2", "c/3")
    assert names_below(tmp_path) == []


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert names_below(tmp_path / "gone") == []
