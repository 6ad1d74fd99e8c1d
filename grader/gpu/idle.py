"""Waits until no other program computes on a GPU: the lock keeps away other graders, but not other programs.

The grader asks NVML, because asking through CUDA would create another context on the GPU. The GPU counts as idle
immediately if no process has a context on it and its memory is empty. Both are required, because inside a container
NVML may hide the processes of others. Programs that hold a context but run no kernels (an idle notebook) do not distort
times. In all other cases the GPU counts as idle when NVML's utilisation, the share of the last sampling period (at most
a second) in which a kernel ran, is close to zero.

If the GPU does not become idle, grading continues and the record says so. Without NVML the grader does not wait, and
the record says that too.
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
"""The highest utilisation, in per cent, that counts as idle: drawing an idle desktop causes that much."""
EMPTY_BYTES = 256 << 20
"""A GPU with less memory in use than this, not counting the driver's reserve, is assumed to hold no context."""


@dataclass(frozen=True)
class Use:
    """The users of a GPU: ids of the processes with a context, bytes in use, and the per cent of the time in which a
    kernel ran. None where NVML does not report a value."""

    processes: tuple[int, ...]
    memory_bytes: int | None
    busy_percent: int | None

    @property
    def idle(self) -> bool | None:
        """Whether the GPU is idle; None if NVML reports too little to tell."""
        if not self.processes and self.memory_bytes is not None and self.memory_bytes < EMPTY_BYTES:
            return True
        return None if self.busy_percent is None else self.busy_percent <= DRAWING_PERCENT

    @property
    def others(self) -> str:
        """A phrase that names the GPU's users; '' if there are none. Read it only while the grader runs no program on
        the GPU, since it would name that program too."""
        if self.processes:
            return f"process {', '.join(map(str, self.processes))}"
        if self.memory_bytes is not None and self.memory_bytes >= EMPTY_BYTES:
            return f"another program, with {self.memory_bytes / 1e9:.1f} GB of its memory"
        return ""

    def __str__(self) -> str:
        busy = "busy" if self.busy_percent is None else f"{self.busy_percent} % busy"
        who = f", process {', '.join(map(str, self.processes))}" if self.processes else ""
        return f"{busy} with other programs{who}"


Reader = Callable[[], Use | None]


@dataclass(frozen=True)
class Waited:
    """The result of waiting. `idle` is None if unknown; `sentence` describes the result for people."""

    idle: bool | None
    sentence: str

    @property
    def warning(self) -> str:
        """A warning for people, or ''."""
        return f"The GPU was {self.sentence}: its times may be too long." if self.idle is False else ""


def wait_until_idle(
    read: Reader | None,
    say: Callable[[str], None],
    *,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Waited:
    """Wait until `read` finds the GPU idle, for at most `patience_s` seconds. After 2 seconds, `say` is called with one
    sentence."""
    began, said = clock(), False
    while True:
        use = read() if read is not None else None
        spent = clock() - began
        if use is None or use.idle is None:
            return Waited(None, "NVML does not report whether the GPU was idle")
        if use.idle:
            return Waited(True, f"idle after {spent:.1f} s" if said else "idle")
        if spent >= patience_s:
            return Waited(False, f"not idle after {spent:.0f} s: {use}")
        if not said and spent > 2:  # our own last run stays in NVML's sampling period for up to a second
            said = True
            say(f"waiting for the GPU: it is {use}")
        sleep(POLL_S)


class IdleWait:
    """Waits for one GPU before each submission. A GPU that stays busy delays a class only once."""

    def __init__(self, read: Reader | None) -> None:
        self._read = read
        self._patience_s = PATIENCE_S

    def __call__(self, say: Callable[[str], None]) -> Waited:
        """Wait like `wait_until_idle`, but not at all if the GPU was still busy at the end of the last wait."""
        waited = wait_until_idle(self._read, say, patience_s=self._patience_s)
        self._patience_s = 0.0 if waited.idle is False else PATIENCE_S
        return waited


@contextlib.contextmanager
def use_reader(uuid: str) -> Iterator[Reader | None]:
    """A function that reads who uses the GPU with this UUID; None if NVML does not know it."""
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
