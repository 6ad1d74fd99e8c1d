"""The grader's side of a run's output streams and of its trace."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import tempfile
import threading
from typing import IO


class Drain:
    """Reads a stream in the background and keeps its first `keep` bytes, so that a flood of output costs no memory.

    The stream may never end: a writer can send its descriptor of the stream through a socket to that socket itself, and
    the unread message keeps the stream open after the writer's death. So after `finish` was called, reading stops as
    soon as the stream is empty.
    """

    def __init__(self, stream: IO[bytes], keep: int) -> None:
        self._stream = stream
        self._keep = keep
        self._kept = bytearray()
        self._writers_ended = os.eventfd(0)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        stream = self._stream.fileno()
        waiting = select.poll()
        waiting.register(stream, select.POLLIN)
        waiting.register(self._writers_ended, select.POLLIN)
        with contextlib.suppress(OSError, ValueError):
            while stream in dict(waiting.poll()) and (chunk := os.read(stream, 1 << 16)):
                room = self._keep - len(self._kept)
                if room > 0:
                    self._kept += chunk[:room]

    def finish(self) -> None:
        """Wait until everything that was written has been read. Call it when every writer is dead."""
        os.eventfd_write(self._writers_ended, 1)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._stream.close()
            os.close(self._writers_ended)

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", errors="replace")


class Receiver:
    """Stores the lines that a run sends through a socket that was opened before the run began. The program cannot take
    back, change or read a line that it has sent. (With a pipe, the writer could read it through /proc/self/fd.)

    `descriptor` is the program's end. The first `most_bytes` that arrive are written to an unnamed file.
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
                    self._file.write(chunk[: self._most - self.received + 1])  # + 1: the reader sees that it was cut
                self.received += len(chunk)

    def finish(self) -> IO[bytes]:
        """Return the file with everything received, rewound. Call it when every process of the run is dead."""
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_WR)  # closing is not enough if a writer has hidden its end
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
