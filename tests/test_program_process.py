"""The child process of a Python program: what it can reach of its parent, and what is left of it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.python.channel import Channel
from grader.sandbox import landlock
from tests.support.course import ROOT

BEGIN = """
import os, socket, sys, time
sys.path.insert(0, {root!r})
from grader.python import program_process
program_process.adopt()
ours, theirs = socket.socketpair()
child = os.fork()
if child:
    sys.exit(program_process.wait(child))
program_process.leave(theirs.fileno())
"""


def code_of(rest: str) -> int:
    """The exit code of a process whose child does the rest."""
    return subprocess.run([sys.executable, "-c", BEGIN.format(root=str(ROOT)) + rest], check=False).returncode


@pytest.mark.skipif(
    landlock.version() < 2, reason="this kernel has no Landlock, and only the guard protects the parent"
)
def test_the_parents_memory_is_out_of_reach(tmp_path: Path) -> None:
    looks = "open(f'/proc/{os.getppid()}/mem', 'rb')"
    assert code_of(f"try:\n    {looks}\nexcept PermissionError:\n    sys.exit(9)") == 9
    moves = f"import pathlib; place = pathlib.Path({str(tmp_path)!r}); (place / 'a').mkdir(); (place / 'b').touch()\n"
    assert code_of(f"{moves}(place / 'b').rename(place / 'a' / 'b')") == 0


def test_the_child_has_only_the_channel() -> None:
    assert (
        code_of("assert not [n for n in range(3, 99) if n != theirs.fileno() and os.path.exists(f'/dev/fd/{n}')]") == 0
    )


def test_the_childs_exit_code_or_signal_is_told() -> None:
    assert code_of("os._exit(7)") == 7
    assert code_of("os.kill(os.getpid(), 11)") == (-11 & 255)


def test_nothing_outlives_the_program(tmp_path: Path) -> None:
    late = tmp_path / "late"
    rest = f"if not os.fork():\n    os.setsid()\n    time.sleep(1)\n    open({str(late)!r}, 'w')\n"
    assert code_of(rest) == 0
    time.sleep(1.5)
    assert not late.exists()


def test_the_program_ends_with_the_process_that_has_its_device(tmp_path: Path) -> None:
    late = tmp_path / "late"
    assert code_of(f"os.kill(os.getppid(), 9)\ntime.sleep(1)\nopen({str(late)!r}, 'w')") == -9
    time.sleep(1.5)
    assert not late.exists()


def test_messages_arrive_whole_and_what_is_none_is_refused() -> None:
    ours, theirs = socket.socketpair()
    Channel(theirs).send(["upload", [1, "fp32"]], b"abc")
    message, content = Channel(ours).receive()
    assert (message, content.tobytes()) == (["upload", [1, "fp32"]], b"abc")
    theirs.sendall(b"\xff" * 12)
    with pytest.raises(ValueError, match="too long"):
        Channel(ours).receive()
    theirs.sendall(bytes(12))
    with pytest.raises(ValueError, match="Expecting value"):
        Channel(ours).receive()
    theirs.close()
    with pytest.raises(EOFError):
        Channel(ours).receive()
