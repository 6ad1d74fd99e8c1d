"""Notes in a plan what host code does with device memory and kernels.

Addresses are made up: buffer number i begins at (i + 1) · 2⁴⁰, so an address tells its buffer and its offset. A
`Replayer` can do everything at once: for `grader run`, and for the trial launches of autotune on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from grader.plans.lines import program_line
from grader.plans.plan import (
    MAX_CONSTANT_BYTES,
    Blob,
    Buffer,
    Code,
    Constant,
    Copy,
    Fill,
    Kernel,
    Launch,
    Plan,
    Step,
    blob_name,
    touched,
)
from grader.plans.replayer import Replayer

ptx_of: dict[bytes, tuple[bytes, tuple[Any, ...]]] = {}
"""For machine code that Triton made: the PTX, and how ptxas was called (`Code`)."""
_APART = 1 << 40


class NoValues(Exception):
    """Host code asked for values of a tensor. The text says what to do instead."""


class Loaded(NamedTuple):
    """What Triton wants to know of a kernel that is loaded. Programs, such as its second tutorial, divide by the number
    of registers, also if no device has loaded the kernel."""

    handle: int
    registers: int = 32
    spills: int = 0
    most_threads: int = 1024


_loaded: list[Kernel] = []
"""All kernels of this process: Triton loads each once, and launches it for every shape."""
blobs: dict[str, bytes] = {}
"""The blobs of this process's plans, by name."""


class Recorder:
    """Records one plan.

    A `replayer` loads the kernels at once. It does what is recorded only from `go_live` on, since most host code never
    asks what a device would answer. With `gives_values`, for `grader run`, it does all, and host code may read memory.
    With `is_before`, while the file itself runs, there is no memory.
    """

    def __init__(
        self, replayer: Replayer | None = None, *, gives_values: bool = False, is_before: bool = False
    ) -> None:
        self.replayer, self.gives_values = replayer, gives_values
        self._is_before = is_before
        self.notes: list[str] = []
        self.samples: dict[int, bytes] = {}
        """Values for the input buffers, by number, which are repeated until a buffer is full."""
        self._live = gives_values
        self._trying = False
        self._buffers: list[int] = []
        self._constants: list[Blob] = []
        self._steps: list[Step] = []

    def plan(self, arguments: int) -> Plan:
        """What was recorded. The first buffers are the `arguments`; those that only trials used are empty."""
        used = {place[0] for step in self._steps for place, _ in touched(step, self._constants)} | {*range(arguments)}
        kernels = list(dict.fromkeys(step.kernel for step in self._steps if isinstance(step, Launch)))
        numbers = {kernel: number for number, kernel in enumerate(kernels)}
        return Plan(
            buffers=tuple(Buffer(bytes=size * (number in used)) for number, size in enumerate(self._buffers)),
            constants=tuple(self._constants),
            kernels=tuple(_loaded[each] for each in kernels),
            steps=tuple(
                step.model_copy(update={"kernel": numbers[step.kernel]}) if isinstance(step, Launch) else step
                for step in self._steps
            ),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """What is done meanwhile is no part of the plan: autotune measures it."""
        before, self._trying = self._trying, True
        try:
            yield
        finally:
            self._trying = before

    def go_live(self) -> None:
        """Let the replayer do what was recorded so far, and all that follows."""
        if self._live or self.replayer is None:
            return
        self._live = True
        for size in self._buffers:
            self.replayer.allocate(size)
        for number, sample in self.samples.items():
            whole = sample * -(-self._buffers[number] // max(1, len(sample)))
            self.replayer.do(Constant(to=(number, 0), constant=0), whole[: self._buffers[number]])
        for step in self._steps:
            data = blobs[self._constants[step.constant].name] if isinstance(step, Constant) else b""
            self.replayer.do(step, data)

    @property
    def _plans(self) -> bool:
        """Whether what is done now is part of the plan."""
        return not (self._trying or self.gives_values)

    def _do(self, step: Step, constant: bytes = b"") -> None:
        file, line = program_line()
        step = step.model_copy(update={"file": file, "line": line})
        if self._plans:
            self._steps.append(step)
        if self.replayer is not None and self._live:
            self.replayer.do(step, constant)

    @staticmethod
    def place(address: int) -> tuple[int, int]:
        """(buffer, offset) of an address; (-1, 0) of a null pointer."""
        return (address // _APART - 1, address % _APART) if address else (-1, 0)

    # ---- memory ---------------------------------------------------------------------------------------------------

    def allocate(self, size_bytes: int) -> int:
        if self._is_before:
            raise NoValues(
                "tensors are made in solve, which runs for each shape: move this line there, or under "
                '`if __name__ == "__main__":`, which only `grader run` runs'
            )
        self._buffers.append(size_bytes)
        if self.replayer is not None and self._live:
            self.replayer.allocate(size_bytes, program_line())
        return len(self._buffers) * _APART

    def free(self, address: int) -> None:
        """The memory stays in the plan, whose launches may still use it."""
        if self.replayer is not None and self._live and not self._plans:
            self.replayer.free(self.place(address)[0])

    def upload(self, address: int, data: bytes) -> None:
        """Write bytes that host code knows: a constant."""
        number = len(self._constants)
        if self._plans:
            if sum(each.bytes for each in self._constants) + len(data) > MAX_CONSTANT_BYTES:
                raise ValueError(
                    f"the constants of solve take more than {MAX_CONSTANT_BYTES >> 20} MiB: compute large tables in a "
                    "kernel"
                )
            self._constants.append(Blob(name=_kept(data), bytes=len(data)))
        self._do(Constant(to=self.place(address), constant=number), data)

    def fill(self, address: int, pattern: bytes, count: int) -> None:
        """Write `count` times the 1, 2, 4 or 8 bytes of `pattern`."""
        self._do(Fill(to=self.place(address), pattern=pattern.hex(), count=count))

    def copy(self, to: int, address: int, size_bytes: int) -> None:
        self._do(Copy(to=self.place(to), source=self.place(address), bytes=size_bytes))

    def download(self, address: int, size_bytes: int) -> bytes:
        """Raises NoValues where a plan is recorded."""
        if not self.gives_values or self.replayer is None:
            raise NoValues("host code never sees values of a tensor: compute with them in a kernel")
        return self.replayer.download(self.place(address), size_bytes)

    # ---- kernels --------------------------------------------------------------------------------------------------

    def load(self, name: str, binary: bytes, shared_bytes: int) -> Loaded:
        """Load the kernel `name` from what Triton compiled."""
        ptx, ptxas = ptx_of.get(binary, (binary, ()))
        _loaded.append(Kernel(name=name, code=Code(ptx=_kept(ptx), ptxas=ptxas), shared_bytes=shared_bytes))
        number = len(_loaded) - 1
        loaded = self.replayer.load(_loaded[number], binary, program_line()) if self.replayer is not None else ()
        return Loaded(number, *loaded)

    def launch(
        self, kernel: int, grid: tuple[int, int, int], arguments: Sequence[int | bytes], *,
        threads: int, shared_bytes: int = 0, cluster: int = 1, cooperative: bool = False,
    ) -> None:  # fmt: skip
        """Launch a kernel with blocks of so many `threads`, and clusters of so many blocks. An argument is an address
        or the bytes of a value."""
        self._do(
            Launch(
                kernel=kernel,
                grid=grid,
                block=(threads, 1, 1),
                shared_bytes=shared_bytes,
                cluster=cluster,
                cooperative=cooperative,
                arguments=tuple(each.hex() if isinstance(each, bytes) else self.place(each) for each in arguments),
            )
        )

    def synchronize(self) -> None:
        if self.replayer is not None and self._live:
            self.replayer.synchronize()


def _kept(content: bytes) -> str:
    """The name of a blob, which is kept for all plans of this process."""
    name = blob_name(content)
    blobs[name] = content
    return name


_used: list[Recorder] = []


def use(recorder: Recorder) -> None:
    """Let this process's submission use a recorder."""
    _used[:] = [recorder]


def current() -> Recorder:
    return _used[0]
