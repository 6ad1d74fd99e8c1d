"""What a run wrote is read to its end, also where the end never comes."""

from __future__ import annotations

import array
import os
import socket
import time

from grader.sandbox.streams import Drain, Receiver


def hide(descriptor: int) -> None:
    """Put a descriptor into a message that only its own sender could receive: closing does not end it."""
    one, other = socket.socketpair(socket.AF_UNIX)
    one.sendmsg(
        [b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor, one.fileno(), other.fileno()]))]
    )
    one.detach()
    other.detach()


def test_all_that_was_printed_is_kept_though_a_writer_is_still_there() -> None:
    reads, writes = os.pipe()
    drain = Drain(os.fdopen(reads, "rb"), keep=1_000_000)
    os.write(writes, b"x" * 50_000)
    began = time.monotonic()
    drain.finish()
    assert time.monotonic() - began < 4
    assert drain.text == "x" * 50_000
    os.close(writes)


def test_a_trace_is_read_to_its_last_line_though_its_descriptor_is_hidden() -> None:
    receiver = Receiver(1 << 20)
    receiver.start()
    os.write(receiver.descriptor, b"line\n" * 10_000)
    hide(receiver.descriptor)
    began = time.monotonic()
    assert receiver.finish().read() == b"line\n" * 10_000
    assert time.monotonic() - began < 30
    receiver.close()
