"""Opens NVML, and finds a GPU in it by UUID."""

from __future__ import annotations

import atexit
import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import pynvml


@functools.cache
def keep_open() -> None:
    """Leave NVML open until the process ends. Opening it initialises the driver, which can take seconds where no
    persistence daemon keeps it initialised. While NVML is open, CUDA programs need not initialise it either."""
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        atexit.register(pynvml.nvmlShutdown)


@contextlib.contextmanager
def opened() -> Iterator[bool]:
    """Keep NVML open during the block; False without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


@contextlib.contextmanager
def nvml_device(uuid: str) -> Iterator[Any | None]:
    """NVML's handle of the GPU with this UUID while the block runs; None if NVML does not know it."""
    with opened() as there:
        handle = None
        if there:
            with contextlib.suppress(pynvml.NVMLError):
                handle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        yield handle
