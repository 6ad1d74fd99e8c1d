"""Waits until no other program computes on a GPU: the lock keeps graders apart, not everybody else.

What NVML says decides, since asking through CUDA would put a context of our own on the GPU. It is idle at once when no
process has a context on it and its memory is empty; both, because inside a container NVML may hide the processes of
others. Programs that hold a context but do nothing (a notebook) disturb no times: then the GPU is idle when NVML's
utilisation, the share of the last sampling period (at most a second) in which a kernel ran, is next to nothing.

If the GPU does not become idle, grading goes on and the record says so. Without NVML there is no wait, and the record
says that.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pynvml

from grader.gpu.nvml import nvml_device

PATIENCE_S = 30.0
POLL_S = 0.1
DRAWING_PERCENT = 5
"""Utilisation of an idle desktop on the same GPU."""
EMPTY_BYTES = 256 << 20
"""Below this, not counting the driver's own reserve, a GPU is taken to hold no context."""


@dataclass(frozen=True)
class Use:
    """Who uses a GPU: processes with a context by id, bytes in use, per cent of the time in which a kernel ran. None
    where NVML does not say."""

    processes: tuple[int, ...]
    memory_bytes: int | None
    busy_percent: int | None

    @property
    def idle(self) -> bool | None:
        """None where NVML's answer is not conclusive."""
        if not self.processes and self.memory_bytes is not None and self.memory_bytes < EMPTY_BYTES:
            return True
        return None if self.busy_percent is None else self.busy_percent <= DRAWING_PERCENT

    def __str__(self) -> str:
        busy = "busy" if self.busy_percent is None else f"{self.busy_percent} % busy"
        who = f", process {', '.join(map(str, self.processes))}" if self.processes else ""
        return f"{busy} with other programs{who}"


Reader = Callable[[], Use | None]


@dataclass(frozen=True)
class Waited:
    """The result of waiting. `idle` is None where unknown; `sentence` is for people."""

    idle: bool | None
    sentence: str

    @property
    def warning(self) -> str:
        """For people to see, or ''."""
        return f"The GPU was {self.sentence}: its times may be too long." if self.idle is False else ""


def wait_until_idle(
    read: Reader | None,
    say: Callable[[str], None],
    *,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Waited:
    """Wait until `read` finds the GPU idle, or `patience_s` seconds. `say` gets one sentence when that takes time."""
    began, said = clock(), False
    while True:
        use = read() if read is not None else None
        spent = clock() - began
        if use is None or use.idle is None:
            return Waited(None, "whether the GPU was idle is not known: NVML does not say")
        if use.idle:
            return Waited(True, f"idle after {spent:.1f} s" if said else "idle")
        if spent >= patience_s:
            return Waited(False, f"not idle after {spent:.0f} s: {use}")
        if not said and spent > 2:  # the last run of our own is in NVML's sampling period for up to a second
            said = True
            say(f"waiting for the GPU: it is {use}")
        sleep(POLL_S)


class IdleWait:
    """Waits for one GPU, submission after submission. A GPU that stays busy delays a class only once."""

    def __init__(self, read: Reader | None) -> None:
        self._read = read
        self._patience_s = PATIENCE_S

    def __call__(self, say: Callable[[str], None]) -> Waited:
        """As `wait_until_idle`."""
        waited = wait_until_idle(self._read, say, patience_s=self._patience_s)
        self._patience_s = 0.0 if waited.idle is False else PATIENCE_S
        return waited


@contextlib.contextmanager
def use_reader(uuid: str) -> Iterator[Reader | None]:
    """Reads who uses the GPU with this UUID; None where NVML does not answer for it."""
    with nvml_device(uuid) as handle:
        yield None if handle is None else lambda: _use(handle)


def _use(handle: object) -> Use:
    processes: tuple[int, ...] = ()
    memory = busy = None
    with contextlib.suppress(pynvml.NVMLError):
        processes = tuple(int(process.pid) for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    with contextlib.suppress(pynvml.NVMLError):
        memory = int(pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used)
    with contextlib.suppress(pynvml.NVMLError):
        busy = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    return Use(processes, memory, busy)
