"""The grader's ends of what a run writes to: its output streams and its trace."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import tempfile
import threading
from typing import IO


class Drain:
    """Reads a stream in the background and keeps its first `keep` bytes: a flood costs no memory.

    Its end may never come: a writer can hide a descriptor in a socket message that refers to itself, which outlives
    it. So reading ends, after `finish` was called, as soon as nothing is left in it.
    """

    def __init__(self, stream: IO[bytes], keep: int) -> None:
        self._stream = stream
        self._keep = keep
        self._kept = bytearray()
        self._last_words = os.eventfd(0)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        stream = self._stream.fileno()
        waiting = select.poll()
        waiting.register(stream, select.POLLIN)
        waiting.register(self._last_words, select.POLLIN)
        with contextlib.suppress(OSError, ValueError):
            while stream in dict(waiting.poll()) and (chunk := os.read(stream, 1 << 16)):
                room = self._keep - len(self._kept)
                if room > 0:
                    self._kept += chunk[:room]

    def finish(self) -> None:
        """Wait until all is read that was written; every writer is dead by now."""
        os.eventfd_write(self._last_words, 1)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._stream.close()
            os.close(self._last_words)

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", errors="replace")


class Receiver:
    """Takes down what a run sends through a socket that was open before it began: lines once sent cannot be taken
    back, changed or read again. (A pipe could be read by its writer, through /proc/self/fd.)

    `descriptor` is the end for the program. What arrives goes to an unnamed file, `most_bytes` of it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._ours.shutdown(socket.SHUT_WR)
        for end, option in ((self._ours, socket.SO_RCVBUF), (self._theirs, socket.SO_SNDBUF)):
            end.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="grader-trace-")  # noqa: SIM115 (closed in close)
        self._most = most_bytes
        self.received = 0
        self._thread: threading.Thread | None = None

    @property
    def descriptor(self) -> int:
        return self._theirs.fileno()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := self._ours.recv(1 << 18):
                if self.received < self._most:
                    self._file.write(chunk[: self._most - self.received + 1])  # one more: read_trace sees it is cut
                self.received += len(chunk)

    def finish(self) -> IO[bytes]:
        """What was received, at its beginning; called when every process of the run is dead."""
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_WR)  # a writer may have hidden its end where closing does not reach it
        self._theirs.close()
        if self._thread is not None:
            self._thread.join(timeout=60)
        self._file.flush()
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        self._theirs.close()
        self._ours.close()
        self._file.close()
