"""The device, as host code asks PyTorch for it."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, NoReturn

from triton.runtime import driver

from grader.plans.recorder import current
from grader.plans.tensor_names import NoSuchName


def is_available() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def get_device_capability(device: Any = None) -> tuple[int, int]:
    major, minor = driver.active.get_device_capability()
    return int(major), int(minor)


def get_device_name(device: Any = None) -> str:
    return "a CUDA GPU"


def get_device_properties(device: Any = None) -> Any:
    """PyTorch's names of what Triton knows of the device."""
    found = driver.active.utils.get_device_properties(0)
    major, minor = get_device_capability()
    return SimpleNamespace(
        name=get_device_name(),
        major=major,
        minor=minor,
        multi_processor_count=found["multiprocessor_count"],
        regs_per_multiprocessor=found["max_num_regs"],
        shared_memory_per_block_optin=found["max_shared_mem"],
        warp_size=found["warpSize"],
    )


def synchronize(device: Any = None) -> None:
    current().synchronize()


def set_device(device: Any) -> None:
    """There is only one device."""


def empty_cache() -> None:
    """Memory is not kept."""


def current_stream(device: Any = None) -> Any:
    return SimpleNamespace(cuda_stream=0, synchronize=synchronize)


device = contextlib.nullcontext
"""A context manager that chooses the only device."""


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName(
        f"torch.cuda.{name} is not there for submissions, which have one device and one stream; to compare "
        "configurations use triton.autotune or triton.testing.do_bench"
    )
