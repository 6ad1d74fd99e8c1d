"""Where no control group counts memory, what processes hide is found by looking."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import pytest

from grader.sandbox import Limits, gauge
from grader.sandbox.gauge import Gauge
from grader.sandbox.process_tree import descendants, page_table_bytes

STEP, COUNT = 2 << 20, 1000


def own_tables() -> int:
    return sum(page_table_bytes(process) for process in descendants(os.getpid()) if process.pid == os.getpid())


def test_page_tables_are_counted() -> None:
    before = own_tables()
    with mmap.mmap(-1, STEP * COUNT, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ) as space:
        space.madvise(mmap.MADV_NOHUGEPAGE)
        assert {space[place * STEP] for place in range(COUNT)} == {0}
        assert own_tables() - before >= COUNT * 4096


@pytest.mark.parametrize(("hidden", "broken"), [(True, "memory"), (False, "")])
def test_a_program_that_hides_what_it_has_open_answers_for_the_machines_files_in_memory(
    hidden: bool, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: Iterator[int] = iter([1 << 30, 5 << 30])
    monkeypatch.setattr(gauge, "shared_memory_of_the_machine", lambda: next(sizes))
    monkeypatch.setattr(gauge, "hides_descriptors", lambda _: hidden)
    assert Gauge(os.getpid(), Limits(wall_s=1, memory_bytes=3 << 30), None, ()).measure() == broken
