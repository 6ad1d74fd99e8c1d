"""A replayer that does one command after the other, for `grader run` and for the trial launches of autotune."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence

from grader.plans.plan import Kernel, Step, place_line


class DeviceFailed(Exception):
    """The replayer ended, after a message on stderr."""


class Replayer:
    """Starts `command`, which reads commands from one descriptor and answers on another. `binary_of` makes what it
    loads from what Triton compiled: the path of a shared library from PTX, or the machine code as it is."""

    def __init__(self, command: Sequence[str], binary_of: Callable[[bytes], bytes]) -> None:
        self._binary_of = binary_of
        self._events = 0
        self._place = "", 0
        (theirs_in, commands), (answers, theirs_out) = os.pipe(), os.pipe()
        served = [*command, "--serve", str(theirs_in), str(theirs_out)]
        self.process = subprocess.Popen(served, pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self._commands, self._answers = os.fdopen(commands, "wb"), os.fdopen(answers, "rb")

    def close(self) -> int:
        """End the replayer. Returns its exit code."""
        with contextlib.suppress(BrokenPipeError):
            self._commands.close()
        return self.process.wait()

    def _send(self, text: str, data: bytes = b"", *, flush: bool = False) -> None:
        try:
            self._commands.write(text.encode() + data)
            if flush:
                self._commands.flush()
        except BrokenPipeError:
            raise DeviceFailed from None

    def _asked(self, text: str) -> str:
        """The answer to a command."""
        self._send(text, flush=True)
        if line := self._answers.readline():
            return line.decode().rstrip("\n")
        raise DeviceFailed

    def _at(self, file: str, line: int) -> None:
        if (file, line) != self._place:
            self._place = file, line
            self._send(place_line(file, line))

    def do(self, step: Step, constant: bytes = b"") -> None:
        """Do a step; `constant` has the bytes that it writes if it writes a constant."""
        self._at(step.file, step.line)
        self._send(step.command(f"- {len(constant)}"), constant)

    def allocate(self, size_bytes: int, place: tuple[str, int] = ("", 0)) -> None:
        """Make the next buffer."""
        self._at(*place)
        self._send(f"buffer {size_bytes}\n")

    def free(self, number: int) -> None:
        if self.process.poll() is None:
            self._send(f"free {number}\n")

    def download(self, place: tuple[int, int], size_bytes: int) -> bytes:
        self._asked(f"download {place[0]} {place[1]} {size_bytes}\n")
        return self._answers.read(size_bytes)

    def load(self, kernel: Kernel, binary: bytes, place: tuple[str, int]) -> tuple[int, int, int]:
        """Load the next kernel. Returns its registers, spills and most threads of a block."""
        made = self._binary_of(binary)
        self._at(*place)
        self._send(kernel.command(f"- {len(made)}"), made)
        registers, spills, threads = map(int, self._asked("attributes\n").split())
        return registers, spills, threads

    def reset(self) -> None:
        """Free all buffers; the next one is number 0."""
        self._send("reset\n")

    def synchronize(self) -> None:
        self._asked("synchronize\n")

    def elapsed_ms(self, call: Callable[[], object]) -> float:
        """The time of the kernels that `call` launches."""
        self._send("event\n")
        call()
        self._send("event\n")
        self._events += 2
        return float(self._asked(f"elapsed {self._events - 2} {self._events - 1}\n"))

    def properties(self) -> dict[str, int]:
        """The GPU's properties that Triton reads; empty on the emulator."""
        words = self._asked("properties\n").split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))
