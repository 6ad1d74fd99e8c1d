"""Waiting for an idle GPU, and making it ready while something compiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.gpu_idle import EMPTY_BYTES, Use, Waited, use_reader, wait_until_idle
from grader.gpu_lock import gpu_if_free, gpu_to_ourselves
from grader.gpu_memory import Filled, Filler
from grader.gpu_ready import Preparer

FREE = Use((), 5 << 20, 0)
NOTEBOOK = Use((4711,), 3 << 30, 0)
TRAINING = Use((4711,), 70 << 30, 98)
ENDED_JUST_NOW = Use((), 5 << 20, 80)
HIDDEN = Use((), 70 << 30, 98)
"""Another container's program: its process cannot be seen."""


class Clock:
    """Time passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waited(*uses: Use | None, patience_s: float = 30.0) -> tuple[Waited, list[str], float]:
    clock, said, left = Clock(), list[str](), iter(uses)
    last: list[Use | None] = []

    def read() -> Use | None:
        last[:] = [next(left, last[0] if last else None)]
        return last[0]

    found = wait_until_idle(read, said.append, patience_s=patience_s, clock=clock, sleep=clock.sleep)
    return found, said, clock.now


@pytest.mark.parametrize("use", [FREE, NOTEBOOK, ENDED_JUST_NOW, Use((1,), 9 << 30, 3)])
def test_a_gpu_on_which_nothing_computes_is_idle_at_once(use: Use) -> None:
    found, said, seconds = waited(use)
    assert found == Waited(True, "idle", empty=not use.processes)
    assert said == [] and seconds == 0


@pytest.mark.parametrize("use", [TRAINING, HIDDEN])
def test_another_program_is_waited_for_and_named(use: Use) -> None:
    found, said, seconds = waited(*[use] * 50, NOTEBOOK)
    assert found.idle is True
    assert found.sentence == "idle after 5.0 s"
    assert seconds == pytest.approx(5.0)
    assert len(said) == 1 and said[0].startswith("waiting for the GPU: it is 98 % busy with other programs")
    assert ("process 4711" in said[0]) == bool(use.processes)


def test_waiting_ends_and_says_that_the_gpu_is_not_idle() -> None:
    found, _, seconds = waited(TRAINING)
    assert found == Waited(False, "not idle after 30 s: 98 % busy with other programs, process 4711")
    assert seconds == pytest.approx(30.0, abs=0.2)


@pytest.mark.parametrize("use", [None, Use((), None, None), Use((), EMPTY_BYTES, None), Use((1,), 1, None)])
def test_where_nvml_does_not_say_nobody_waits(use: Use | None) -> None:
    found, said, seconds = waited(use)
    assert found.idle is None and "not known" in found.sentence
    assert said == [] and seconds == 0


def test_without_nvml_there_is_no_reader() -> None:
    with use_reader("GPU-of-the-tests") as read:
        assert read is None
    assert wait_until_idle(None, pytest.fail).idle is None


# ---- making ready -----------------------------------------------------------------------------------------------


FILLED = Filled(1 << 30, 2 << 30, 3 << 30, 0.001, 0.3)


class Fills(Filler):
    """Counts how often memory is filled."""

    def __init__(self, answer: Filled | str = FILLED) -> None:
        super().__init__("GPU-1")
        self.answer = answer
        self.times = 0

    def start(self) -> None:
        pass

    def fill(self) -> Filled | str:
        self.times += 1
        return self.answer


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
    yield


def reading(*uses: Use) -> Callable[[], Use]:
    left = list(uses)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_what_was_made_ready_ahead_is_not_made_ready_again() -> None:
    filler = Fills()
    preparer = Preparer("GPU-1", reading(FREE), filler)
    with preparer.ahead():
        pass
    with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
        assert preparer.now(hold, pytest.fail).sentence.startswith("idle; 1.0 of 3.0 GiB filled with NaN")
    assert filler.times == 1


def test_each_submission_finds_the_gpu_made_ready_anew() -> None:
    filler = Fills()
    preparer = Preparer("GPU-1", reading(FREE), filler)
    for _ in range(3):
        with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
            preparer.now(hold, pytest.fail)
    assert filler.times == 3


def test_a_grader_that_came_in_between_makes_it_necessary_again() -> None:
    filler = Fills()
    preparer = Preparer("GPU-1", reading(FREE), filler)
    with preparer.ahead():
        pass
    with gpu_to_ourselves("GPU-1", pytest.fail):
        pass  # another grader's submission
    with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
        preparer.now(hold, pytest.fail)
    assert filler.times == 2


def test_while_another_grader_times_nothing_is_filled_ahead() -> None:
    filler = Fills()
    preparer = Preparer("GPU-1", reading(FREE), filler)
    with gpu_to_ourselves("GPU-1", pytest.fail):
        with preparer.ahead():
            pass
        assert filler.times == 0
        with gpu_if_free("GPU-1") as hold:
            assert hold is None


def test_only_this_process_believes_its_own_note(tmp_path: Path) -> None:
    note = tmp_path / "cuda-homework-grader-GPU-1.lock"
    for text, believed in ((f"{os.getpid()} prepared\n", True), (f"{os.getpid() + 1} prepared\n", False), ("", False)):
        note.write_text(text)
        with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
            assert hold.prepared is believed
        assert note.read_text() == f"{os.getpid()}\n"


def test_memory_that_was_not_filled_is_said_to_be_as_the_driver_left_it() -> None:
    preparer = Preparer("GPU-1", reading(FREE), Fills("pycuda is not installed"))
    with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
        prepared = preparer.now(hold, pytest.fail)
    assert prepared.sentence.endswith("; memory as the driver left it: pycuda is not installed")
    assert prepared.warning == ""


@pytest.mark.parametrize("use", [NOTEBOOK, Use((), EMPTY_BYTES, 0), Use((), None, 0)])
def test_memory_is_left_alone_where_others_may_want_some(use: Use) -> None:
    filler = Fills()
    with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
        prepared = Preparer("GPU-1", reading(use), filler).now(hold, pytest.fail)
    assert filler.times == 0
    assert prepared.sentence.startswith("idle; memory as the driver left it: other programs use the GPU, or NVML")
    assert prepared.warning == ""


def test_a_busy_gpu_warns_and_delays_a_class_once(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[float] = []

    def wait(read: object, say: object, *, patience_s: float) -> Waited:
        patience.append(patience_s)
        return Waited(len(patience) == 3, "not idle after 30 s: 98 % busy with other programs")

    monkeypatch.setattr("grader.gpu_ready.wait_until_idle", wait)
    preparer = Preparer("GPU-1", None, Fills())
    warnings = []
    for _ in range(4):
        with gpu_to_ourselves("GPU-1", pytest.fail) as hold:
            warnings.append(preparer.now(hold, pytest.fail).warning)
    assert patience == [30.0, 0.0, 0.0, 30.0]
    assert warnings[0] == ("The GPU was not idle after 30 s: 98 % busy with other programs: its times may be too long.")
    assert warnings[2] == ""


def test_a_lock_that_cannot_be_made_is_no_fault_of_preparing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path / "file"))
    filler = Fills()
    with Preparer("GPU-1", reading(FREE), filler).ahead():
        pass
    assert filler.times == 0
