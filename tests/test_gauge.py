"""Where no control group counts memory, what processes hide is found by looking."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from grader.sandbox import Limits, gauge, process_tree
from grader.sandbox.gauge import Gauge
from grader.sandbox.process_tree import Tree, page_table_bytes

STEP, COUNT = 2 << 20, 1000


def own_tables() -> int:
    return sum(page_table_bytes(process) for process in Tree(os.getpid()).list() if process.pid == os.getpid())


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


def test_a_tree_grows_and_shrinks_and_reads_other_processes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    honest = process_tree._process

    def noted(pid: int) -> process_tree.Process:
        read.append(pid)
        return honest(pid)

    monkeypatch.setattr(process_tree, "_process", noted)
    wait = [sys.executable, "-c", "input()"]
    with (
        subprocess.Popen(wait, stdin=subprocess.PIPE) as other,
        subprocess.Popen(
            ["sh", "-c", f"read line; {sys.executable} -c 'input()' & read line; wait"], stdin=subprocess.PIPE
        ) as root,
    ):
        assert root.stdin is not None
        tree = Tree(root.pid)
        assert [process.pid for process in tree.list()] == [root.pid]
        assert other.pid in read
        read.clear()
        root.stdin.write(b"\n")
        root.stdin.flush()
        while len(found := tree.list()) < 2:
            pass
        assert {process.parent for process in found if process.pid != root.pid} == {root.pid}
        assert other.pid not in read and os.getpid() not in read
        for running in (root, other):
            running.kill()
    for process in found:
        process_tree.kill(process.pid)
