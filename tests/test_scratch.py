"""Temporary folders go away, whatever is in them: at once, or a little later where there is room."""

import contextlib
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from grader.sandbox.scratch import scratch_folder
from tests.support.course import ROOT
from tests.support.machine import goes

Usage = namedtuple("Usage", "total used free")


def leave(folder: Path) -> None:
    """What a hostile program leaves: deep, and without permissions."""
    deep = folder / "work" / "/".join("x" * 60)
    deep.mkdir(parents=True)
    (deep / "file").write_text("left")
    deep.chmod(0)
    (folder / "work").chmod(0)


@pytest.mark.parametrize("linger", [False, True])
def test_a_folder_goes_with_all_that_is_in_it_even_after_an_error(tmp_path: Path, linger: bool) -> None:
    with contextlib.suppress(ValueError), scratch_folder("test", tmp_path, linger=linger) as folder:
        leave(folder)
        raise ValueError
    assert goes(folder) if linger else not folder.exists()


def test_one_folder_at_most_waits_to_be_removed(tmp_path: Path) -> None:
    made = []
    for _ in range(5):
        with scratch_folder("test", tmp_path, linger=True) as folder:
            made.append(folder)
            (folder / "output").write_bytes(bytes(1 << 20))
        assert not any(earlier.exists() for earlier in made[:-1])
    assert goes(made[-1])


def test_where_there_is_little_room_it_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10 << 30, 9 << 30, 1 << 30))
    with scratch_folder("test", tmp_path, linger=True) as folder:
        leave(folder)
    assert not folder.exists()


def test_the_interpreter_ends_only_when_all_is_removed(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from grader.sandbox.scratch import scratch_folder
with scratch_folder("test", Path(sys.argv[1]), linger=True) as folder:
    for number in range(3000):
        (folder / str(number)).touch()
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_the_interpreters_end_closes_is_removed_without_a_word(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from grader.sandbox.scratch import scratch_folder
open_folder = scratch_folder("test", Path(sys.argv[1]), linger=True)
open_folder.__enter__()
"""
    said = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert (said.stderr, list(tmp_path.iterdir())) == (b"", [])
