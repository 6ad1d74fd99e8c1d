"""What a run's NVML samples say, and the lock of a GPU."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from grader.base.errors import MachineFault
from grader.gpu import lock as gpu_lock
from grader.gpu.lock import gpu_to_ourselves
from grader.gpu.state import Instant, summarise, watching

IDLE = Instant(345, 3201, 29, 78.0, 0x1)
BUSY = Instant(1980, 3201, 36, 207.0, 0x0)


def test_clocks_are_those_of_the_time_in_which_the_gpu_worked() -> None:
    state = summarise([IDLE, IDLE, IDLE, BUSY])
    assert state is not None
    assert (state.sm_mhz, state.memory_mhz, state.temperature_c, state.power_w) == (1980, 3201, 36, 207.0)
    assert not state.throttled


def test_one_sample_at_the_power_cap_makes_the_run_a_throttled_one() -> None:
    state = summarise([BUSY, Instant(1755, 3201, 61, 700.0, 0x4), BUSY])
    assert state is not None
    assert state.throttled
    assert state.slowed == ("power cap",)


@pytest.mark.parametrize("reason", [0x1, 0x2, 0x10, 0x100])
def test_idling_and_chosen_clocks_are_no_throttling(reason: int) -> None:
    state = summarise([Instant(1500, 3201, 40, 100.0, reason)])
    assert state is not None
    assert not state.throttled


def test_without_nvml_there_is_no_state_and_no_failure() -> None:
    with watching(None) as watch:
        pass
    assert watch.state is None
    with watching(lambda: None) as watch:
        pass
    assert watch.state is None


def test_every_run_has_at_least_one_sample() -> None:
    with watching(lambda: BUSY, every_s=60) as watch:
        pass
    assert watch.state is not None


def test_a_second_grader_waits_for_the_gpu_and_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
    said: list[str] = []
    told, entered = threading.Event(), threading.Event()

    def wait(sentence: str) -> None:
        said.append(sentence)
        told.set()

    def second() -> None:
        with gpu_to_ourselves("GPU-1", wait):
            entered.set()

    with gpu_to_ourselves("GPU-1", said.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        assert not entered.is_set()
    thread.join(10)
    assert entered.is_set()
    assert said == [f"waiting for the GPU: process {os.getpid()} is timing another submission on it"]


def test_other_gpus_are_not_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
    with gpu_to_ourselves("GPU-1", pytest.fail), gpu_to_ourselves("GPU-2", pytest.fail):
        held = [path for path in tmp_path.iterdir() if not _free(path)]
    assert len(held) == 2


def _free(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_the_lock_is_the_whole_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADER_LOCKS", raising=False)
    mine, shared = tmp_path / "mine", tmp_path / "shared"
    mine.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setattr(gpu_lock, "PLACES", (tmp_path / "none", mine, shared))
    with gpu_to_ourselves("GPU-1", pytest.fail):
        (path,) = shared.iterdir()
        assert path.stat().st_mode & 0o777 == 0o666, "other users cannot take it"


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
    (tmp_path / "cuda-homework-grader-GPU-1.lock").symlink_to(tmp_path / "precious")
    with (
        pytest.raises(MachineFault, match=r"GPU-1\.lock: the lock of the GPU cannot be opened .*remove that file"),
        gpu_to_ourselves("GPU-1", pytest.fail),
    ):
        pass
    assert not (tmp_path / "precious").exists()
