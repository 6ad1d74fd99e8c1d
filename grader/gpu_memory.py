"""Fills a GPU's free memory with NaN between submissions, so that nothing a program left there is of use to the next.

Theory of operation. A helper process, this module run as a program, is asked by lines on its stdin. For each line it
makes a CUDA context through pycuda, allocates what is free but for a margin, writes the pattern, gives all of it
back, ends the context and answers with a line of JSON. Between two requests it holds no context, hence no memory of
the GPU; nor does the grader while programs run. It is started when first asked and serves a whole session, so
that pycuda is imported once. It ends with its stdin, so also when the grader is killed.

Memory is asked for with cuMemAlloc: managed memory could be filled in the host's. The pattern, all bits set, is a NaN
in float64, float32, float16 and bfloat16 alike, and -1 as an integer.

Without pycuda nothing is filled, and records say so. What a program then finds in fresh memory is what the driver
leaves in it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

PATTERN = 0xFFFFFFFF
MARGIN_BYTES = 512 << 20
"""Left alone: what the driver itself may need, and other programs that start meanwhile."""
BLOCK_BYTES = 4 << 30
"""Of one allocation: a whole GPU's free memory need not be in one piece."""
PATIENCE_S = 30.0

_LEAST_BLOCK_BYTES = 2 << 20
"""The driver's own granularity: smaller pieces are left alone."""
NOT_INSTALLED = "pycuda is not installed (pip install 'cuda-homework-grader[gpu]')"


@dataclass(frozen=True)
class Filled:
    """What was filled: `filled` of `total` bytes, of which `free` were free. `write_s` is what writing took, `seconds`
    all of it with making the context, allocating and freeing."""

    filled: int
    free: int
    total: int
    write_s: float
    seconds: float

    @property
    def sentence(self) -> str:
        gib = 1 << 30
        rate = f" at {self.filled / self.write_s / 1e12:.2f} TB/s" if self.write_s > 0 else ""
        return (
            f"{self.filled / gib:.1f} of {self.total / gib:.1f} GiB filled with NaN{rate} "
            f"({self.free / gib:.1f} GiB were free; {self.seconds:.2f} s)"
        )


# ---- the grader's side ------------------------------------------------------------------------------------------


class Filler:
    """The helper of one GPU, by UUID; started when it is first needed."""

    def __init__(self, uuid: str) -> None:
        self._uuid = uuid
        self._helper: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have the helper started, if it can be; it is ready some time later."""
        if self._helper is None and available():
            package = str(Path(__file__).resolve().parent.parent)
            path = os.pathsep.join([package, *filter(None, sys.path)])
            with contextlib.suppress(OSError):  # `fill` says so
                self._helper = subprocess.Popen(
                    [sys.executable, "-m", "grader.gpu_memory"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "CUDA_VISIBLE_DEVICES": self._uuid, "PYTHONPATH": path},
                    start_new_session=True,  # Ctrl-C is the grader's to handle
                )

    def fill(self) -> Filled | str:
        """Fill the GPU's free memory; a phrase that says why it was not filled. Call it while the GPU is idle and
        locked (see `grader.gpu_lock`)."""
        if not available():
            return NOT_INSTALLED
        self.start()
        helper = self._helper
        if helper is None:
            return "its helper process cannot be started"
        answer = _asked(helper)
        try:
            found = json.loads(answer)
            return found["problem"] if "problem" in found else Filled(**found)
        except (ValueError, TypeError):
            self.close()
            return f"its helper process ended, or took more than {PATIENCE_S:g} s"

    def close(self) -> None:
        """End the helper. It has no context then, so there is nothing to be tidied up."""
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.kill()
            with helper:  # waits, and closes the pipes
                pass


def _asked(helper: subprocess.Popen[bytes]) -> bytes:
    """The helper's answer; b'' when it has ended, or does not answer in time."""
    assert helper.stdin is not None and helper.stdout is not None
    try:
        helper.stdin.write(b"fill\n")
        helper.stdin.flush()
        answered, _, _ = select.select([helper.stdout], [], [], PATIENCE_S)
        return helper.stdout.readline() if answered else b""
    except (OSError, ValueError):  # it has ended, or was closed meanwhile
        return b""


def available() -> bool:
    """Whether pycuda is there; importing it is the helper's affair."""
    return importlib.util.find_spec("pycuda") is not None


# ---- the helper's side ------------------------------------------------------------------------------------------


def fill_free_memory(driver: Any, device: Any) -> Filled:
    """Fill `device` (a pycuda.driver.Device); `driver` is pycuda.driver. Raises its Error."""
    began = time.monotonic()
    context = device.make_context()
    try:
        free, total = driver.mem_get_info()
        with _allocated(driver, free - MARGIN_BYTES) as blocks:
            driver.Context.synchronize()
            writing = time.monotonic()
            for block, size in blocks:
                driver.memset_d32(int(block), PATTERN, size // 4)
            driver.Context.synchronize()
            write_s = time.monotonic() - writing
    finally:
        context.pop()
        context.detach()
    filled = sum(size for _, size in blocks)
    return Filled(filled, free, total, write_s if filled else 0.0, time.monotonic() - began)


@contextlib.contextmanager
def _allocated(driver: Any, wanted: int) -> Iterator[list[tuple[Any, int]]]:
    """(allocation, bytes) of up to `wanted` bytes in all, in ever smaller pieces where large ones are not to be had."""
    blocks: list[tuple[Any, int]] = []
    left, most = wanted, BLOCK_BYTES
    try:
        while left >= _LEAST_BLOCK_BYTES and most >= _LEAST_BLOCK_BYTES:
            size = min(left, most) // _LEAST_BLOCK_BYTES * _LEAST_BLOCK_BYTES
            try:
                blocks.append((driver.mem_alloc(size), size))
            except driver.MemoryError:
                most = size // 2
            else:
                left -= size
        yield blocks
    finally:
        for block, _ in blocks:
            block.free()


def serve(driver: Any, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer every line of `requests` until it ends."""
    for _ in requests:
        try:
            driver.init()
            answer = asdict(fill_free_memory(driver, driver.Device(0)))
        except driver.Error as error:
            answer = {"problem": f"CUDA refused: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _main() -> None:
    try:
        import pycuda.driver as driver
    except ImportError as error:  # pycuda is there, but not the libraries that it needs
        sys.stdout.write(json.dumps({"problem": f"pycuda cannot be used here: {error}"}) + "\n")
        return
    serve(driver, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _main()
