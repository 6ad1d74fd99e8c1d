"""The clock outside the program, on counters made up here; on a GPU see tests/gpu/test_measurement.py."""

import time
from collections.abc import Sequence

import pytest

from grader.gpu import outside_clock
from grader.gpu.outside_clock import UtilisationClock


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside_clock, "SETTLE_S", 0.0)


def clock(samples: Sequence[tuple[int, int]]) -> UtilisationClock:
    return UtilisationClock(lambda since_us: [sample for sample in samples if sample[0] > since_us])


def test_utilisation_is_added_up_over_the_sampling_periods_between_two_marks() -> None:
    read = clock([(1_000_000, 90), (1_200_000, 50), (1_400_000, 100), (1_600_000, 0)])
    busy = read.between((1.0, 1_000_000), (1.6, 1_600_000))
    assert busy is not None
    assert busy.busy_s == pytest.approx(0.1 + 0.2)
    assert busy.interval_s == pytest.approx(0.6)
    assert busy.occupancy is None


def test_a_period_that_goes_on_after_the_second_mark_counts_in_part() -> None:
    busy = clock([(1_200_000, 100), (1_400_000, 100)]).between((1.0, 1_000_000), (1.3, 1_300_000))
    assert busy is not None
    assert busy.busy_s == pytest.approx(0.3)


def test_without_samples_nothing_is_known() -> None:
    assert clock([]).between((1.0, 1_000_000), (2.0, 2_000_000)) is None


def test_a_mark_waits_until_the_counters_hold_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(outside_clock, "SETTLE_S", 0.15)
    monkeypatch.setattr(outside_clock.time, "sleep", waited.append)
    now = time.monotonic()
    busy, idle = clock([]), clock([])
    busy.worked(now)
    busy.worked(now - 2)  # an older run does not shorten the wait
    idle.worked(now - 1)
    busy.mark()
    idle.mark()
    assert 0.1 < waited[0] <= 0.15
    assert waited[1] == 0


def test_there_is_no_clock_without_a_driver() -> None:
    with outside_clock.outside_clock("GPU-that-is-not-there") as none:
        assert none is None
