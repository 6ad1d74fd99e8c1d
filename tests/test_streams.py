"""What a run wrote is read to its end, also where the end never comes."""

import array
import os
import re
import socket
import threading
import time

from grader.sandbox.streams import Drain, Receiver
from tests.support.course import ROOT


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


def test_lines_of_the_tracer_and_of_the_interpreter_never_mix() -> None:
    """The tracer writes so many bytes at once; with 256 KiB, lines that another thread wrote stood within its lines."""
    source = (ROOT / "grader/programs/trace/cupti_tracer.cpp").read_text()
    number, shift = re.findall(r"kWriteBytes = size_t\((\d+)\) << (\d+)", source)[0]
    receiver = Receiver(1 << 30)
    receiver.start()
    block = (b"a" * 199 + b"\n") * ((int(number) << int(shift)) // 200 + 8)

    def write(data: bytes, times: int) -> None:
        for _ in range(times):
            assert os.write(receiver.descriptor, data) == len(data)

    threads = [threading.Thread(target=write, args=args) for args in ((block, 1000), (b"b" * 700 + b"\n", 5000))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = receiver.finish().read().splitlines()
    assert {(len(line), *set(line)) for line in lines} == {(199, ord("a")), (700, ord("b"))}
    receiver.close()
