"""The room: functions that parse untrusted bytes run confined, each call in a process of its own."""

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Annotated

import pytest
from pydantic import Field

from cudaemu.process import Stopped
from grader.sandbox import bubblewrap, budget, landlock, room
from grader.sandbox.budget import Budget, draw_from, drawing
from grader.sandbox.room import Blob, Sentence, Unreadable, confined


@confined()
def total(numbers: list[int]) -> int:
    return sum(numbers)


@confined()
def process() -> int:
    return os.getpid()


@confined()
def twice() -> tuple[int, int]:
    return process(), os.getpid()


@confined()
def first_bytes(file: IO[bytes], count: int) -> Blob:
    return file.read(count)


@confined()
def refuse(why: str) -> int:
    raise Unreadable(why)


@confined(cpu_s=1)
def search(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


@confined(memory_bytes=1 << 29)
def allocate(count: int) -> int:
    return len(bytes(count))


@confined()
def recurse(depth: int) -> int:
    return 1 + recurse(depth + 1)


@confined()
def crash() -> int:
    os._exit(7)


@confined(answer_bytes=1000)
def text_of(length: int) -> str:
    return "x" * length


@confined()
def sentence_of(length: int) -> Sentence:
    return "x" * length


@confined()
def list_of(length: int) -> Annotated[list[int], Field(max_length=3)]:
    return list(range(length))


@confined()
def wrong_kind() -> int:
    return "seven"  # type: ignore[return-value]


@confined()
def attempts(place: str) -> list[str]:
    """What this process could do, of all that it must not."""
    done = []
    for name, attempt in {
        "read": lambda: Path(place).read_text(),
        "environment": lambda: Path("/proc/self/environ").read_text(),
        "write": lambda: Path(place).with_name("new").write_text("x"),
        "connect": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        "network": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "fork": os.fork,
        "execute": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "signal": lambda: os.kill(os.getppid(), 0),
        "trace": lambda: Path(f"/proc/{os.getppid()}/mem").read_bytes(),
    }.items():
        try:
            attempt()
        except OSError:
            continue
        done.append(name)
    return [*done, *(name for name in os.environ if "SECRET" in name)]


def test_a_call_runs_in_another_process_and_each_in_its_own() -> None:
    assert total([1, 2, 3]) == 6
    assert len({os.getpid(), process(), process()}) == 3


def test_a_call_from_inside_stays_in_that_process() -> None:
    assert len(set(twice())) == 1


def test_an_open_file_can_be_passed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)))
    with (tmp_path / "file").open("rb") as file:
        assert first_bytes(file, 200) == bytes(range(200))


def test_what_a_function_refuses_is_refused_to_the_caller() -> None:
    with pytest.raises(Unreadable, match="has a hole"):
        refuse("has a hole")
    with pytest.raises(Unreadable) as refused:
        refuse("x" * 100_000)
    assert len(str(refused.value)) <= room.MAX_SENTENCE


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: search("(x+x+)+y", "x" * 40), "1 s of processor time"),
        (lambda: allocate(1 << 30), "memory"),
        (lambda: recurse(0), "nested"),
        (crash, "exit code 7"),
        (lambda: text_of(2000), "more than 1,000 bytes"),
        (lambda: sentence_of(2000), "too large"),
        (lambda: list_of(4), "too large"),
        (wrong_kind, "wrong kind"),
    ],
)
def test_limits_crashes_and_wrong_answers_are_the_bytes_fault(call: Callable[[], object], why: str) -> None:
    with pytest.raises(Unreadable, match=re.escape(why)):
        call()
    assert total([1]) == 1


def test_a_call_can_do_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", "x")
    (tmp_path / "secret").write_text("x")
    assert attempts(str(tmp_path / "secret")) == []


def test_a_killed_server_is_replaced() -> None:
    total([1])
    server = room._server()
    server._process.kill()
    server._process.wait()
    assert total([2]) == 2


def test_without_landlock_the_server_runs_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    if bubblewrap.problem() is not None:
        pytest.skip("needs bubblewrap")
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(room, "_current", None)
    assert room.control() == 499500
    assert "bwrap" in str(room._server()._process.args)
    room._server().end()


@confined()
def work(cpu_s: float) -> None:
    began = time.process_time()
    while time.process_time() < began + cpu_s:
        pass


def test_the_calls_of_a_step_share_a_budget_also_from_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "WALL_PER_CPU", 200)  # this machine may be busy

    def work_four_times() -> None:
        for _ in range(4):
            work(0.2)

    with drawing(Budget(0.5, "Reading it")) as drawn:
        work(0.2)
        with ThreadPoolExecutor(1, initializer=draw_from, initargs=(drawn,)) as pool:
            failed = pool.submit(work_four_times).exception()
        assert isinstance(failed, Stopped) and str(failed) == "Reading it took more than 0.5 s of processor time."
        with pytest.raises(Stopped):
            process()
    assert process()


def test_calls_from_many_threads_run_at_once() -> None:
    answers: list[int] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(total([n]))) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(12))
