"""The device as a program has it that runs in a process of its own: everything is done by the other process
(`service`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader import emulator
from grader.base.errors import GraderFault, MachineFault
from grader.python import library
from grader.python.backend import Refused
from grader.python.channel import Channel
from grader.python.device import Argument, Device, Loaded, Shape

_ERRORS: dict[str, type[Exception]] = {
    each.__name__: each
    for each in (
        ValueError, TypeError, MemoryError, library.CudaError, Refused, emulator.Unsupported, GraderFault, MachineFault,
    )
}  # fmt: skip


class RemoteDevice(Device):
    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def _ask(self, name: str, *arguments: object, data: Any = b"", into: NDArray[Any] | None = None) -> Any:
        self._channel.send([name, arguments, *library.program_line()], data)
        (error, value), _ = self._channel.receive(into)
        if error:
            raise _ERRORS.get(error, RuntimeError)(value)
        return value

    def output_opened(self) -> None:
        """The program is about to open its output file."""
        self._ask("output_opened")

    def allocate(self, size_bytes: int) -> int:
        return int(self._ask("allocate", size_bytes))

    def free(self, address: int) -> None:
        self._ask("free", address)

    def upload(self, address: int, values: NDArray[Any], type_: str) -> None:
        self._ask("upload", address, type_, list(values.shape), data=values.reshape(-1).view(np.uint8).data)

    def download(self, address: int, values: NDArray[Any], type_: str, view: Sequence[Sequence[int]]) -> None:
        self._ask("download", address, values.nbytes, type_, view, into=values)

    def copy(self, to: int, address: int, size_bytes: int) -> None:
        self._ask("copy", to, address, size_bytes)

    def clear(self, address: int, size_bytes: int) -> None:
        self._ask("clear", address, size_bytes)

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        handle, registers, spills, threads = self._ask("load", name, shared_bytes, data=binary)
        return handle, registers, spills, threads

    def launch(
        self, kernel: int, grid: Sequence[int], shape: Shape, arguments: Sequence[Argument], stream: int = 0
    ) -> None:
        self._ask("launch", kernel, grid, shape, arguments)

    def synchronize(self) -> None:
        self._ask("synchronize")

    def properties(self) -> dict[str, int]:
        return dict(self._ask("properties"))

    def capability(self) -> tuple[int, int]:
        major, minor = self._ask("capability")
        return major, minor

    def set_printf_bytes(self, size_bytes: int) -> None:
        self._ask("set_printf_bytes", size_bytes)

    def new_event(self) -> int:
        return int(self._ask("new_event"))

    def record_event(self, event: int) -> None:
        self._ask("record_event", event)

    def wait_for_event(self, event: int) -> None:
        self._ask("wait_for_event", event)

    def elapsed_ms(self, begin: int, end: int) -> float:
        return float(self._ask("elapsed_ms", begin, end))
