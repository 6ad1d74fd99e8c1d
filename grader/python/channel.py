"""Messages between a program's process and the process that has its device.

A message is a JSON list and the bytes of an array; so is an answer. Nothing else is read from a program's process,
since it could send anything.
"""

from __future__ import annotations

import json
import operator
import select
import socket
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LENGTHS = struct.Struct("<IQ")
_MOST_TEXT_BYTES = 64 << 20


class Channel:
    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, content: object, data: Any = b"") -> None:
        """Send a message; its numbers may be numpy's."""
        text = json.dumps(content, default=operator.index).encode()
        self._end.sendall(_LENGTHS.pack(len(text), len(data)) + text)
        self._end.sendall(data)

    def receive(self, into: NDArray[Any] | None = None) -> tuple[Any, NDArray[np.uint8]]:
        """A message, whose bytes are stored in the contiguous array `into` if they are as many. Raises EOFError if the
        other end is closed, ValueError for what is no message."""
        text_bytes, data_bytes = _LENGTHS.unpack(self._read(np.empty(_LENGTHS.size, np.uint8)).data)
        if text_bytes > _MOST_TEXT_BYTES:
            raise ValueError("the message is too long")
        text = json.loads(self._read(np.empty(text_bytes, np.uint8)).tobytes())
        if into is None or into.nbytes != data_bytes:
            into = np.empty(data_bytes, np.uint8)
        return text, self._read(into.reshape(-1).view(np.uint8))

    def has_message(self, process: int) -> bool:
        """Wait for a message. False if the other process, given by a descriptor, has ended and sent none."""
        ready, _, _ = select.select([self._end.fileno(), process], [], [])
        return self._end.fileno() in ready

    def _read(self, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
        left = content.data
        while left:
            got = self._end.recv_into(left)
            if not got:
                raise EOFError
            left = left[got:]
        return content
