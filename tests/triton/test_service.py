"""The process that has a program's device: it does what it records, and no message ends it or reaches other memory."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")

from grader.grading.run_record import Entry, read_record
from grader.programs.run import Recording, open_recording
from grader.python.channel import Channel
from grader.python.device import Device, Loaded, Shape
from grader.python.provenance import Follower
from grader.python.remote import RemoteDevice
from grader.python.service import Service

ONE = Shape(128, 0, 1, 0)
HUGE = b"\2\0\0\0" + (1 << 60).to_bytes(8, "little") + b"[]"
"""A message that is said to have an exbibyte."""


class HostMemory(Device):
    """Arrays of numpy as device memory."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        self.launches: list[tuple[Any, ...]] = []

    def allocate(self, size_bytes: int) -> int:
        made = np.zeros(size_bytes, np.uint8)
        self.arrays[made.ctypes.data] = made
        return int(made.ctypes.data)

    def free(self, address: int) -> None:
        del self.arrays[address]

    def upload(self, address: int, values: np.ndarray[Any, Any], type_: str) -> None:
        self.arrays[address][: values.nbytes] = values.reshape(-1).view(np.uint8)

    def download(self, address: int, values: np.ndarray[Any, Any], type_: str, view: Any) -> None:
        values.view(np.uint8)[:] = self.arrays[address][: values.nbytes]

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        return 77, 32, 0, 1024

    def launch(self, *arguments: Any) -> None:
        self.launches.append(arguments)


class Served:
    """A program's end of the channel, and what is behind the other one."""

    def __init__(self, recording: Recording, folder: Path) -> None:
        self.memory, self.recording = HostMemory(), recording
        follower = Follower(folder / "input", folder / "output", lambda: 5, recording.file.fileno())
        service = Service(self.memory, follower, lambda binary: binary.decode(), {"known"})
        self.ours, theirs = socket.socketpair()
        never, self._ended = os.pipe()
        self.thread = threading.Thread(target=service.serve, args=(Channel(theirs), never))
        self.thread.start()
        self.follower, self.device = follower, RemoteDevice(Channel(self.ours))

    def record(self) -> list[Entry]:
        self.ours.close()
        self.thread.join()
        return read_record(self.recording.file) or []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with open_recording("7") as recording:
        made = Served(recording, tmp_path)
        yield made
        made.ours.close()
        made.thread.join()


def test_what_is_copied_and_launched_is_recorded(served: Served) -> None:
    values = np.arange(6, dtype=np.float32)
    address = served.device.allocate(24)
    served.device.upload(address, values, "fp32")
    found = np.empty(6, np.float32)
    served.device.download(address, found, "fp32", ((3, 2), (1, 3)))
    kernel = served.device.load("scale", b"its code", 0)[0]
    served.device.launch(kernel, (np.int64(4), 1, 1), ONE, [("", address + np.int64(8)), ("int32", 6)])
    assert found.tolist() == values.tolist()
    assert served.memory.launches == [(77, (4, 1, 1), ONE, [["", address + 8], ["int32", 6]])]
    record = served.record()
    arrays = {entry.kind: entry.values.view(np.float32).tolist() for entry in record if entry.values.size}
    assert arrays == {"uploads": [0, 1, 2, 3, 4, 5], "downloads": [0, 3, 1, 4, 2, 5]}
    assert record[-1].numbers == ("scale its code", 4, 1, 1, *ONE, 1, 8, ["int32", 6])
    event: Any = served.follower.report()["arguments"]
    assert event["count"] > 1000  # the build had not compiled the kernel


@pytest.mark.parametrize(
    "message",
    [
        ["allocate", [-1]],
        ["allocate", ["1"]],
        ["allocate", [1 << 60]],
        ["upload", [64, "fp32", [2]]],
        ["download", [64, 8, "fp32", [[2], [1]]]],
        ["download", [0, 8, "zz32", [[2], [1]]]],
        ["copy", [64, 64, 8]],
        ["clear", [64, 8]],
        ["free", [64]],
        ["launch", [1, [1, 1, 1], list(ONE), []]],
        ["launch", [77, [1, 1], list(ONE), []]],
        ["launch", [77, [1, 1, 1], list(ONE), [["", 64]]]],
        ["launch", [77, [1, 1, 1], list(ONE), [["int32", 1 << 32]]]],
        ["launch", []],
    ],
)
def test_a_wrong_message_is_answered_and_does_nothing(message: list[Any], served: Served) -> None:
    served.device.load("known", b"known", 0)
    channel = Channel(served.ours)
    channel.send([*message, "softmax.py", 3], b"12345678")
    (error, _), content = channel.receive()
    assert (error or message[0] == "free") and not content.size and not served.memory.launches
    assert served.device.allocate(8) in served.memory.arrays


@pytest.mark.parametrize("view", [((2, 2), (-1, 1)), ((2, 2), (5, 1)), ((9, 9), (0, 0)), ((2,), (1, 1))])
def test_no_download_reads_beyond_what_was_copied(view: Any, served: Served) -> None:
    address = served.device.allocate(16)
    with pytest.raises((ValueError, RuntimeError)):
        served.device.download(address, np.empty(4, np.float32), "fp32", view)


@pytest.mark.parametrize(
    "bytes_", [b"\xff" * 12, bytes(12), b"\2\0\0\0" + bytes(8) + b"{}", b"\2\0\0\0" + bytes(8) + b"[]", HUGE]
)
def test_what_is_no_message_ends_the_service(bytes_: bytes, served: Served) -> None:
    served.ours.sendall(bytes_)
    served.thread.join(10)
    assert not served.thread.is_alive()
