"""Waiting for an idle GPU."""

import pytest

from grader.gpu.idle import EMPTY_BYTES, IdleWait, Use, Waited, use_reader, wait_until_idle

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
    assert found == Waited(True, "idle")
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
    assert found.idle is None and "NVML does not report" in found.sentence
    assert said == [] and seconds == 0


def test_without_nvml_there_is_no_reader() -> None:
    with use_reader("GPU-of-the-tests") as read:
        assert read is None
    assert wait_until_idle(None, pytest.fail).idle is None


def test_a_busy_gpu_warns_and_delays_a_class_once(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[float] = []

    def wait(read: object, say: object, *, patience_s: float) -> Waited:
        patience.append(patience_s)
        return Waited(len(patience) == 3, "not idle after 30 s: 98 % busy with other programs")

    monkeypatch.setattr("grader.gpu.idle.wait_until_idle", wait)
    waiting = IdleWait(None)
    warnings = [waiting(pytest.fail).warning for _ in range(4)]
    assert patience == [30.0, 0.0, 0.0, 30.0]
    assert [bool(warning) for warning in warnings] == [True, True, False, True]
