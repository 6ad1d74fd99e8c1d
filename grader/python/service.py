"""The process that has the device of a Python program, and follows what the program does with it.

A program can change everything in its own process, and so whatever would note there what it copies and launches.
Therefore the process that is started keeps the device, the trace and the record, and the program runs in a child, which
can only ask for copies and launches. What is recorded is what is done: the bytes that are copied and the code that is
launched are those that came through the channel.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.python import library, provenance
from grader.python.channel import Channel
from grader.python.device import POINTER_BYTES, Argument, Device, Loaded, Shape
from grader.python.provenance import Follower
from grader.python.value_sources import STORAGE, TYPE_BYTES

_LONGEST = 8
"""More dimensions than any array has."""


class Service:
    """Does on `device` what a program asks for. `identity` returns what stands for a kernel's code; `known` has this
    for the kernels that the build step compiled."""

    def __init__(self, device: Device, follower: Follower, identity: Callable[[bytes], str], known: set[str]) -> None:
        self._device, self._follower, self._identity, self._known = device, follower, identity, known
        self._live = _Live()
        self._kernels: dict[int, str] = {}
        """What stands for the code of each loaded kernel, by its handle."""
        self._caller = "", 0
        library.caller = lambda: self._caller
        self._does: dict[str, Callable[..., Any]] = {
            "allocate": self._allocate,
            "free": self._free,
            "upload": self._upload,
            "download": self._download,
            "copy": self._copy,
            "clear": self._clear,
            "load": self._load,
            "launch": self._launch,
            "elapsed_ms": self._elapsed_ms,
            "output_opened": follower.output_opened,
            "synchronize": device.synchronize,
            "properties": device.properties,
            "capability": device.capability,
            "set_printf_bytes": device.set_printf_bytes,
            "new_event": device.new_event,
            "record_event": device.record_event,
            "wait_for_event": device.wait_for_event,
        }

    @property
    def line(self) -> int:
        """The program's line that makes the current call, as its process says."""
        return self._caller[1]

    def serve(self, channel: Channel, process: int) -> None:
        """Until the program's process ends, which is given by a descriptor, or sends what is no message."""
        while channel.has_message(process):
            try:
                (name, arguments, file, line), data = channel.receive()
                self._caller = str(file), _whole(line)
                does = self._does[name]
            except (EOFError, OSError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
                return
            answer: tuple[str, Any] = "", None
            content: Any = b""
            try:
                value = does(*arguments, data) if name in ("upload", "load") else does(*arguments)
                if isinstance(value, np.ndarray):
                    content = value.data
                else:
                    answer = "", value
            except Exception as error:  # the program gets it, as if it had been raised there
                answer = type(error).__name__, str(error)
            try:
                channel.send(answer, content)
            except OSError:
                return

    def _allocate(self, size_bytes: int) -> int:
        address = self._device.allocate(_whole(size_bytes))
        self._follower.launched(("allocate", size_bytes))
        if address:
            self._live.add(address, size_bytes)
        return address

    def _free(self, address: int) -> None:
        if self._live.remove(address):
            self._device.free(address)

    def _upload(self, address: int, type_: str, shape: Sequence[int], data: NDArray[np.uint8]) -> None:
        values = data.view(STORAGE[type_]).reshape(shape)
        self._follower.launched(("upload", *self._live.place(address, values.nbytes)))
        self._follower.uploaded(self._live.without_addresses(values), type_)
        if values.nbytes:
            self._device.upload(address, values, type_)

    def _download(self, address: int, size_bytes: int, type_: str, view: Sequence[Sequence[int]]) -> NDArray[np.uint8]:
        shape, strides = view
        place = self._live.place(address, _whole(size_bytes))
        values = np.empty(size_bytes // STORAGE[type_].itemsize, STORAGE[type_])
        self._follower.launched(("download", *place, size_bytes, *map(_whole, shape), *map(_whole, strides)))
        self._device.download(address, values, type_, view)
        self._follower.downloaded(_viewed(values, shape, strides), type_)
        return values.view(np.uint8)

    def _copy(self, to: int, address: int, size_bytes: int) -> None:
        places = self._live.place(to, _whole(size_bytes)), self._live.place(address, size_bytes)
        self._follower.launched(("copy", size_bytes, *places[0], *places[1]))
        self._device.copy(to, address, size_bytes)

    def _clear(self, address: int, size_bytes: int) -> None:
        self._follower.launched(("clear", *self._live.place(address, _whole(size_bytes)), size_bytes))
        self._device.clear(address, size_bytes)

    def _load(self, name: str, shared_bytes: int, data: NDArray[np.uint8]) -> Loaded:
        binary = data.tobytes()
        code = self._identity(binary)
        self._follower.loaded(f"{name} {code}", compiled_before=code in self._known)
        loaded = self._device.load(str(name), binary, _whole(shared_bytes))
        self._kernels[loaded[0]] = f"{name} {code}"
        return loaded

    def _launch(self, kernel: int, grid: Sequence[int], shape: Sequence[int], arguments: Sequence[Argument]) -> None:
        numbers: list[object] = [self._kernels[kernel], *map(_whole, grid), *map(_whole, shape)]
        x, y, z = grid
        for kind, bits in arguments:
            if not 0 <= bits < 1 << 8 * (TYPE_BYTES[kind] if kind else POINTER_BYTES):
                raise ValueError(f"{bits} is no argument of type {kind or 'pointer'}")
            if kind:
                numbers.append((kind, bits))
            else:
                numbers += self._live.place(bits)
        self._follower.launched(numbers)
        self._device.launch(kernel, (x, y, z), Shape(*shape), arguments)

    def _elapsed_ms(self, begin: int, end: int) -> float:
        return self._follower.timed(self._device.elapsed_ms(begin, end))


def _whole(number: Any) -> int:
    """A size, a count or a line."""
    if type(number) not in (int, bool) or not 0 <= number < 1 << 48:
        raise ValueError(f"{number!r} is no size")
    return int(number)


def _viewed(values: NDArray[Any], shape: Sequence[int], strides: Sequence[int]) -> NDArray[Any]:
    """The array for which the values were copied."""
    span = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    if len(shape) > _LONGEST or span > len(values) or np.prod(shape, dtype=object) > len(values):
        raise ValueError(f"no array of shape {shape} and strides {strides} has {len(values)} values")
    return np.lib.stride_tricks.as_strided(values, shape, [stride * values.itemsize for stride in strides])


class _Live:
    """The device memory of all arrays, numbered in the order of allocation."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._of: dict[int, tuple[int, int]] = {}
        self._made = 0

    def add(self, address: int, size_bytes: int) -> None:
        self._made += 1
        self._of[address] = self._made, size_bytes
        bisect.insort(self._begins, address)

    def remove(self, address: int) -> bool:
        """Whether memory began at this address."""
        if self._of.pop(address, None) is None:
            return False
        self._begins.remove(address)
        return True

    def place(self, address: int, size_bytes: int = 0) -> tuple[int, int]:
        """(number, offset in bytes) of memory; (0, 0) for a null pointer. Raises ValueError for memory of no array."""
        at = bisect.bisect_right(self._begins, address) - 1
        if at >= 0:
            begin = self._begins[at]
            number, whole = self._of[begin]
            if address + size_bytes <= begin + whole:
                return number, address - begin
        if address:
            raise ValueError(f"{size_bytes} bytes at address {address:#x} are not in the memory of an array")
        return 0, 0

    def without_addresses(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values; addresses of arrays, which differ from run to run, are replaced by places that the program
        does not know."""
        if values.dtype.kind not in "iu" or values.itemsize != 8 or not self._begins:
            return values
        begins = np.array(self._begins, np.uint64)
        numbers, sizes = np.array([self._of[begin] for begin in self._begins], np.uint64).T
        bits = np.ascontiguousarray(values).view(np.uint64)
        at = np.maximum(np.searchsorted(begins, bits, "right"), 1) - 1
        offsets = bits - begins[at]
        places = (numbers[at] << np.uint64(48) | offsets) ^ np.uint64(provenance.secret)
        return np.where((bits >= begins[at]) & (offsets < sizes[at]), places, bits)
