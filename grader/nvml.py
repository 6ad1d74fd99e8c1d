"""A GPU as NVML knows it, by its UUID."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pynvml


@contextlib.contextmanager
def nvml_device(uuid: str) -> Iterator[Any | None]:
    """NVML's handle of the GPU with this UUID while the block runs; None where NVML does not answer for it."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except pynvml.NVMLError:
            handle = None
        yield handle
    finally:
        pynvml.nvmlShutdown()
