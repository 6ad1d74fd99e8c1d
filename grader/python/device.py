"""The device that a program uses: in its own process, or through a channel to the process that has it (`service`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from grader.python import gpu, library
from grader.python.backend import library_of
from grader.python.value_sources import TYPE_BYTES

POINTER_BYTES = 8
MOST_THREADS = 1024
Argument = tuple[str, int]
"""An argument of a kernel: the name of its type, '' for a pointer, and its bits."""
Loaded = tuple[int, int, int, int]
"""(handle, registers, spills, most threads) of a kernel."""


class Shape(NamedTuple):
    """How a kernel is launched, apart from its grid: threads and clusters are numbers for a block and of blocks."""

    threads: int
    shared_bytes: int
    cluster: int
    cooperative: int


class Device:
    """The device in this process. Addresses are in device memory; sizes are in bytes."""

    def allocate(self, size_bytes: int) -> int:
        raise NotImplementedError

    def free(self, address: int) -> None:
        raise NotImplementedError

    def upload(self, address: int, values: NDArray[Any], type_: str) -> None:
        """Copy contiguous values, which are of Triton's type `type_` on the device."""
        raise NotImplementedError

    def download(self, address: int, values: NDArray[Any], type_: str, view: Sequence[Sequence[int]]) -> None:
        """Copy values of Triton's type `type_` to a flat array; `view` has the shape and the strides, in elements, of
        the array that they are for."""
        raise NotImplementedError

    def copy(self, to: int, address: int, size_bytes: int) -> None:
        raise NotImplementedError

    def clear(self, address: int, size_bytes: int) -> None:
        raise NotImplementedError

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        """Load the kernel `name` from what Triton compiled."""
        raise NotImplementedError

    def launch(
        self, kernel: int, grid: Sequence[int], shape: Shape, arguments: Sequence[Argument], stream: int = 0
    ) -> None:
        raise NotImplementedError

    def synchronize(self) -> None:
        raise NotImplementedError

    def properties(self) -> dict[str, int]:
        """The properties that Triton reads from a device."""
        raise NotImplementedError

    def capability(self) -> tuple[int, int]:
        raise NotImplementedError

    def set_printf_bytes(self, size_bytes: int) -> None:
        """Set the size of the buffer for output that kernels print."""

    def new_event(self) -> int:
        """The number of a new point in the default stream."""
        raise NotImplementedError

    def record_event(self, event: int) -> None:
        raise NotImplementedError

    def wait_for_event(self, event: int) -> None:
        raise NotImplementedError

    def elapsed_ms(self, begin: int, end: int) -> float:
        """The time between two events."""
        raise NotImplementedError


class _LocalDevice(Device):
    """The device in this process, through the functions of `gpu` or `library`."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def allocate(self, size_bytes: int) -> int:
        return int(self._functions.allocate(size_bytes))

    def free(self, address: int) -> None:
        self._functions.free(address)

    def upload(self, address: int, values: NDArray[Any], type_: str) -> None:
        self._functions.copy_to_device(address, values.ctypes.data, values.nbytes)

    def download(self, address: int, values: NDArray[Any], type_: str, view: Sequence[Sequence[int]]) -> None:
        self._functions.copy_to_host(values.ctypes.data, address, values.nbytes)

    def copy(self, to: int, address: int, size_bytes: int) -> None:
        self._functions.copy_on_device(to, address, size_bytes)

    def synchronize(self) -> None:
        self._functions.synchronize()


class EmulatedDevice(_LocalDevice):
    """Waits for each kernel, since a program can read PyTorch's tensors on the CPU without any call that could wait."""

    NO_TIME_MS = 1e3
    """The time of every run, as reported to do_bench; it is so long that do_bench stops after a few runs."""

    def __init__(self) -> None:
        super().__init__(library)

    def clear(self, address: int, size_bytes: int) -> None:
        """No cache is emulated."""

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        return *library.load(library_of(binary), name, shared_bytes), MOST_THREADS

    def launch(
        self, kernel: int, grid: Sequence[int], shape: Shape, arguments: Sequence[Argument], stream: int = 0
    ) -> None:
        library.launch(kernel, grid, shape.threads, shape.shared_bytes, stream, _stored(arguments))
        library.synchronize()

    def new_event(self) -> int:
        return 0

    def record_event(self, event: int) -> None:
        library.synchronize()

    def wait_for_event(self, event: int) -> None:
        library.synchronize()

    def elapsed_ms(self, begin: int, end: int) -> float:
        return self.NO_TIME_MS


class GpuDevice(_LocalDevice):
    def __init__(self) -> None:
        super().__init__(gpu)
        self._events: list[gpu.Event] = []

    def clear(self, address: int, size_bytes: int) -> None:
        gpu.clear(address, size_bytes)

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        return gpu.load(binary, name, shared_bytes)

    def launch(
        self, kernel: int, grid: Sequence[int], shape: Shape, arguments: Sequence[Argument], stream: int = 0
    ) -> None:
        gpu.launch(
            kernel,
            grid,
            shape.threads,
            shape.shared_bytes,
            stream,
            _stored(arguments),
            cluster=shape.cluster,
            cooperative=bool(shape.cooperative),
        )

    def properties(self) -> dict[str, int]:
        return gpu.properties()

    def capability(self) -> tuple[int, int]:
        return gpu.capability()

    def set_printf_bytes(self, size_bytes: int) -> None:
        gpu.set_printf_bytes(size_bytes)

    def new_event(self) -> int:
        self._events.append(gpu.Event())
        return len(self._events) - 1

    def record_event(self, event: int) -> None:
        self._events[event].record()

    def wait_for_event(self, event: int) -> None:
        self._events[event].synchronize()

    def elapsed_ms(self, begin: int, end: int) -> float:
        return self._events[begin].elapsed_time(self._events[end])


def _stored(arguments: Sequence[Argument]) -> list[Any]:
    """Where the arguments' bits are."""
    bits = [value.to_bytes(TYPE_BYTES[kind] if kind else POINTER_BYTES, "little") for kind, value in arguments]
    return [ctypes.create_string_buffer(each, max(POINTER_BYTES, len(each))) for each in bits]


_used: list[Device] = []


def use(device: Device) -> None:
    """Let this process's program use a device."""
    _used[:] = [device]


def current() -> Device:
    return _used[0]
