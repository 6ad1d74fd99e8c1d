"""Makes a GPU ready for a submission: nobody else computes on it, and its free memory holds nothing of use.

Memory is filled only where nobody else has a context on the GPU: for as long as that takes, a third of a second, it
would be all in use, and other people's programs would fail to get any.

A single submission's GPU is made ready while nvcc compiles it, which needs no GPU, so that it costs no wall time. The
lock of the GPU is taken for that only if it is free, and given back: other graders need not wait for a compiler. When
the lock is taken for the runs, its file says whether anybody was on the GPU in between; then, and where nothing was
compiled, it is made ready there and then.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.errors import MachineFault
from grader.gpu_idle import PATIENCE_S, Reader, Waited, use_reader, wait_until_idle
from grader.gpu_lock import Hold, gpu_if_free
from grader.gpu_memory import Filled, Filler

SHARED = "other programs use the GPU, or NVML does not say that none does"


@dataclass(frozen=True)
class Prepared:
    """What was done, as a sentence of the record; `warning` is one for people to see, or ''."""

    sentence: str
    warning: str = ""


class Preparer:
    """Makes one GPU ready, again and again. `used` says who uses it, `filler` fills its memory."""

    def __init__(self, uuid: str, used: Reader | None, filler: Filler) -> None:
        self._uuid = uuid
        self._used = used
        self._filler = filler
        self._last: Prepared | None = None
        self._patience_s = PATIENCE_S

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """Make the GPU ready in the background while the block runs, if no grader is using it."""
        thread = threading.Thread(target=self._ahead, daemon=True)
        thread.start()
        yield
        thread.join()  # not after Ctrl-C: who stops the grader does not wait for a busy GPU

    def now(self, hold: Hold, say: Callable[[str], None]) -> Prepared:
        """Make the GPU ready, unless it is, under its lock. `say` gets a sentence when that takes time."""
        if hold.prepared and self._last is not None:
            return self._last
        return self._prepare(say)

    def _ahead(self) -> None:
        with contextlib.suppress(MachineFault), gpu_if_free(self._uuid) as hold:  # `now` will meet the fault again
            if hold is not None:
                self._prepare(lambda sentence: None)
                hold.leave_prepared()

    def _prepare(self, say: Callable[[str], None]) -> Prepared:
        self._filler.start()  # it imports pycuda meanwhile
        waited = wait_until_idle(self._used, say, patience_s=self._patience_s)
        self._patience_s = 0.0 if waited.idle is False else PATIENCE_S  # a busy GPU delays a class once
        self._last = _prepared(waited, self._filler.fill() if waited.empty else SHARED)
        return self._last


def _prepared(waited: Waited, filled: Filled | str) -> Prepared:
    memory = filled.sentence if isinstance(filled, Filled) else f"memory as the driver left it: {filled}"
    warning = f"The GPU was {waited.sentence}: its times may be too long." if waited.idle is False else ""
    return Prepared(f"{waited.sentence}; {memory}", warning)


@contextlib.contextmanager
def open_preparer(uuid: str) -> Iterator[Preparer]:
    """The preparer of the GPU with this UUID; its helper ends with the block."""
    filler = Filler(uuid)
    try:
        with use_reader(uuid) as used:
            yield Preparer(uuid, used, filler)
    finally:
        filler.close()
