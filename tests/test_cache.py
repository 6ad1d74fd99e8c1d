"""What is kept in the cache goes when nobody uses it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from grader.sandbox.cache import KEPT_DAYS, forget_unused, mark_used


def aged(path: Path, days: float) -> Path:
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return path


def test_only_what_was_not_used_for_long_is_forgotten(tmp_path: Path) -> None:
    for name in ("old", "new", "used"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "program").write_text("")
    (tmp_path / "old.json").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("old", "used", "old.json"):
        aged(tmp_path / name, KEPT_DAYS + 1)
    mark_used(tmp_path / "used")
    forget_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "new", "used"]
    assert (tmp_path / "new" / "program").exists()


def test_a_link_is_forgotten_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "precious").mkdir()
    link = tmp_path / "cache" / "link"
    link.symlink_to(tmp_path / "precious")
    then = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(link, (then, then), follow_symlinks=False)
    forget_unused(tmp_path / "cache")
    assert not link.is_symlink() and (tmp_path / "precious").is_dir()


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    forget_unused(tmp_path / "none")
    mark_used(tmp_path / "none")
