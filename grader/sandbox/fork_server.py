"""The process that forks a confined child for each call of the room; `room` has the theory of operation.

It serves one grader process over a socket and ends with it. It reads what that process sends, and nothing else: the
arguments of a call go past it, to the child. It keeps the status pipe of each call. When a child has ended, it writes
there how; when the grader has closed its end, it kills the child.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.base.identity import PACKAGES
from grader.sandbox import landlock, room

_MAX_REQUEST = 1 << 16
_OPEN_FILES = 64
_CHUNK = 1 << 20
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/localtime", "/usr/share/zoneinfo")


def libraries() -> tuple[Path, ...]:
    """What a child may read: Python's standard library and packages, the grader, and shared libraries."""
    places = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
    places.add(str(Path(sys.base_prefix) / "lib"))
    return (*map(Path, (*places, *_SYSTEM_LIBRARIES)), *PACKAGES)


@dataclass(frozen=True)
class _Child:
    """A running child: its process, a descriptor that is readable once it has ended, and its call's status pipe."""

    pid: int
    descriptor: int
    status: int


class _Server:
    def __init__(self, calls: socket.socket) -> None:
        self._calls = calls
        self._children: list[_Child] = []
        self._rules = landlock.reader_rules(libraries())

    def run(self) -> None:
        """Serve until the grader closes its end, then kill what still runs."""
        while True:
            poll = select.poll()
            poll.register(self._calls, select.POLLIN)
            for child in self._children:
                poll.register(child.descriptor, select.POLLIN)
                poll.register(child.status, 0)  # only the closing of the other end
            ready = {descriptor for descriptor, _ in poll.poll()}
            for child in list(self._children):
                if child.status in ready:
                    os.kill(child.pid, signal.SIGKILL)
                if child.status in ready or child.descriptor in ready:
                    self._bury(child)
            if self._calls.fileno() in ready and not self._serve_one():
                break
        for child in self._children:
            os.kill(child.pid, signal.SIGKILL)

    def _bury(self, child: _Child) -> None:
        _, ended, usage = os.wait4(child.pid, 0)
        facts = {"exit": os.waitstatus_to_exitcode(ended), "cpu_s": usage.ru_utime + usage.ru_stime}
        _tell(child.status, facts)
        os.close(child.descriptor)
        self._children.remove(child)

    def _serve_one(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._calls, _MAX_REQUEST, 2)
        if not message:
            return False
        request = json.loads(message)
        if not descriptors:
            for name in request["import"]:
                with contextlib.suppress(ImportError):  # the call itself reports it
                    importlib.import_module(name)
            gc.freeze()
            return True
        data, status = descriptors
        try:
            module = importlib.import_module(request["module"])
            function = getattr(module, request["name"]).__wrapped__
            room.answer_type(function)  # made once, not in each child
            pid = os.fork()
        except Exception as error:
            os.close(data)
            _tell(status, {"problem": f"{type(error).__name__}: {error}"})
            return True
        if pid == 0:
            try:
                self._become(data, function, request)
            finally:
                os._exit(1)
        os.close(data)
        self._children.append(_Child(pid, os.pidfd_open(pid), status))
        return True

    def _become(self, data: int, function: Any, request: dict[str, Any]) -> None:
        """Turn this child into the confined process of one call, and run it."""
        ruleset = self._rules.ruleset
        first = 3
        for kept in sorted({data, *((ruleset,) if ruleset >= 0 else ())}):
            os.closerange(first, kept)
            first = kept + 1
        os.closerange(first, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        for kind, limit in (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_CPU, request["cpu_s"]),
            (resource.RLIMIT_AS, request["memory_bytes"]),
        ):
            # At the soft limit of processor time SIGXCPU comes, which says why; at the hard one it is SIGKILL.
            resource.setrlimit(kind, (limit, limit + (kind == resource.RLIMIT_CPU)))
        self._rules.apply()
        self._rules.close()
        room.enter()
        with socket.socket(fileno=data) as connection:
            connection.sendall(_answer_to(connection, function))


def _answer_to(connection: socket.socket, function: Any) -> bytes:
    """Read the arguments, run the function, and return the answer as it is sent."""
    try:
        _, files, _, _ = socket.recv_fds(connection, 1, _OPEN_FILES)
        payload = bytearray()
        while chunk := connection.recv(_CHUNK):
            payload += chunk
        arguments, named = room.unpickled(bytes(payload), files)
        del payload
        return room.VALUE + room.answer_type(function).dump_json(function(*arguments, **named))
    except room.Unreadable as refused:
        return room.REFUSED + str(refused).encode()
    except MemoryError:
        return room.OUT_OF_MEMORY
    except RecursionError:
        return room.CRASHED + b"is nested too deeply"
    except Exception as error:
        headline = f"ends its reader with {type(error).__name__}"
        detail = traceback.format_exc()
        return room.CRASHED + f"{headline}\n{detail[-room.MAX_DETAIL :]}".encode(errors="replace")


def _tell(status: int, facts: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError):  # the caller has gone
        os.write(status, json.dumps(facts).encode()[:4096])
    os.close(status)


def main() -> None:
    """Serve the socket whose number is the only argument."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with contextlib.suppress(OSError), socket.socket(fileno=int(sys.argv[1])) as calls:
        if "--hello" in sys.argv:
            calls.send(b"\0")
        _Server(calls).run()


if __name__ == "__main__":
    main()
