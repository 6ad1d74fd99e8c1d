"""What is kept in the cache goes when nobody uses it."""

import os
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.base.errors import MachineFault
from grader.sandbox.cache import KEPT_DAYS, cache_entry, forget_unused, kept, making, mark_used, put


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


def test_on_a_disk_that_is_nearly_full_an_hour_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("old.json", "new.json"):
        (tmp_path / name).touch()
    aged(tmp_path / "old.json", 0.1)
    forget_unused(tmp_path)
    assert (tmp_path / "old.json").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    forget_unused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["new.json"]


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


def made(content: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "made").write_text(content)
        return folder / "made"

    return make


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_entry_is_made_once_and_then_found_and_marked_as_used(cache: Path) -> None:
    entry = kept("native", "tracer", made("first"))
    aged(entry, KEPT_DAYS + 1)
    assert kept("native", "tracer", made("second")) == entry == cache / "native" / "tracer"
    kept("native", "another", made("other"))
    assert entry.read_text() == "first", "it was used today: what is made beside it does not remove it"


def test_threads_that_want_the_same_entry_share_one_and_its_failure(cache: Path) -> None:
    asked, made_by = threading.Barrier(2), list[str]()

    def one(name: str, fails: bool) -> Path:
        def make(folder: Path) -> Path:
            made_by.append(name)
            time.sleep(0.2)
            if fails:
                raise KeyError(name)
            return made(name)(folder)

        asked.wait()
        return kept("nvcc", f"object{fails}", make)

    with ThreadPoolExecutor(2) as pool:
        entries = set(pool.map(one, "ab", (False, False)))
        failures = [failed.exception() for failed in [pool.submit(one, name, True) for name in "cd"]]
    assert len(entries) == 1 and entries.pop().read_text() == made_by[0]
    assert len(made_by) == 2 and [str(each) for each in failures] == [repr(made_by[1])] * 2


def test_every_kind_is_pruned_when_an_entry_is_made(cache: Path) -> None:
    aged(kept("rules", "old", made("")), KEPT_DAYS + 1)
    kept("rules", "new", made(""))
    assert [path.name for path in (cache / "rules").iterdir()] == ["new"]


def test_what_fails_while_it_is_made_leaves_nothing(cache: Path) -> None:
    def fail(folder: Path) -> Path:
        (folder / "half").write_text("")
        raise KeyError("half")

    with pytest.raises(KeyError):
        kept("native", "tracer", fail)
    assert list((cache / "native").iterdir()) == []


def test_a_folder_takes_the_place_of_a_broken_one(cache: Path) -> None:
    entry = cache_entry("builds", "key")
    entry.mkdir(parents=True)
    (entry / "broken").write_text("")
    with making(entry) as folder:
        (folder / "made").mkdir()
        (folder / "made" / "program").write_text("")
        put(folder / "made", entry)
    assert [path.name for path in entry.iterdir()] == ["program"]
    assert [path.name for path in entry.parent.iterdir()] == ["key"]


def test_a_cache_that_cannot_be_written_is_the_machines_fault(cache: Path) -> None:
    cache.write_text("not a folder")
    with pytest.raises(MachineFault, match="set GRADER_CACHE"):
        kept("native", "tracer", made(""))
