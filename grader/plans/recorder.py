"""Notes in a plan what host code does with device memory and kernels.

Addresses are made up: buffer number i begins at (i + 1) · 2⁴⁰, so an address tells its buffer and its offset. A
`Replayer` can do everything at once: for `grader run`, and for the trial launches of autotune on a GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from grader.plans.lines import program_line
from grader.plans.plan import (
    MAX_CONSTANT_BYTES,
    Blob,
    Buffer,
    Code,
    Configuration,
    Constant,
    Copy,
    Fill,
    Kernel,
    Launch,
    Plan,
    Step,
    blob_name,
)

if TYPE_CHECKING:
    from grader.plans.replayer import Replayer

ptx_of: dict[bytes, tuple[bytes, tuple[Any, ...]]] = {}
"""For machine code that Triton made: the PTX, and how ptxas was called (`Code`)."""
_APART = 1 << 40
MOST_THREADS = 1024
_SOME_REGISTERS = 32
"""For kernels that no device has loaded. Programs such as Triton's second tutorial divide by this number."""
Argument = tuple[str, int]
"""An argument of a kernel: the name of its type, '' for a pointer, and its bits."""


class NoValues(Exception):
    """Host code asked for values of a tensor. The text says what to do instead."""


class Loaded(NamedTuple):
    """What Triton wants to know of a kernel that is loaded."""

    handle: int
    registers: int
    spills: int
    most_threads: int


class Shape(NamedTuple):
    """How a kernel is launched, apart from its grid: `threads` of a block and `cluster` blocks of a cluster."""

    threads: int
    shared_bytes: int
    cluster: int = 1
    cooperative: bool = False


_loaded: list[Kernel] = []
"""All kernels of this process: Triton loads each once, and launches it for every shape."""
blobs: dict[str, bytes] = {}
"""The blobs of all plans of this process."""


class Recorder:
    """Records one plan, for kernels of `architecture`, such as sm_80.

    A `replayer` loads the kernels at once. It does what is recorded only from `go_live` on, since most host code never
    asks what a device would answer. With `gives_values`, for `grader run`, it does all, and host code may read memory.
    With `is_before`, while the file itself runs, there is no memory.
    """

    def __init__(
        self,
        architecture: str,
        replayer: Replayer | None = None,
        *,
        gives_values: bool = False,
        is_before: bool = False,
    ) -> None:
        self.architecture, self.replayer, self.gives_values = architecture, replayer, gives_values
        self._is_before = is_before
        self.configurations: list[Configuration] = []
        self.samples: dict[int, bytes] = {}
        """Values for the input buffers, by number, which are repeated until a buffer is full."""
        self._live = gives_values
        self._buffers: list[int] = []
        self._constants: list[str] = []
        self._constant_bytes = 0
        self._steps: list[Step] = []
        self._trying = False

    def plan(self, arguments: int) -> Plan:
        """What was recorded, without what only trials used. The first buffers are the `arguments`."""
        kernels = _numbered(step.kernel for step in self._steps if isinstance(step, Launch))
        constants = _numbered(step.constant for step in self._steps if isinstance(step, Constant))
        buffers = _numbered([*range(arguments), *(buffer for step in self._steps for buffer in _buffers_of(step))])
        return Plan(
            buffers=tuple(Buffer(bytes=self._buffers[each]) for each in buffers),
            constants=tuple(
                Blob(name=name, bytes=len(blobs[name])) for name in map(self._constants.__getitem__, constants)
            ),
            kernels=tuple(_loaded[each] for each in kernels),
            steps=tuple(_renumbered(step, kernels, constants, buffers) for step in self._steps),
            configurations=tuple(self.configurations),
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
            self._replay(step)

    def end(self) -> None:
        """Free the replayer's memory."""
        if self.replayer is not None:
            self.replayer.reset()

    def _replay(self, step: Step) -> None:
        if self.replayer is None or not self._live:
            return
        if isinstance(step, Constant):
            self.replayer.do(step, blobs[self._constants[step.constant]])
        else:
            self.replayer.do(step)

    def _do(self, step: Step) -> None:
        file, line = program_line()
        step = step.model_copy(update={"file": file, "line": line})
        if not (self._trying or self.gives_values):
            self._steps.append(step)
        self._replay(step)

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
        if self.replayer is not None and self._live and (self._trying or self.gives_values):
            self.replayer.free(self.place(address)[0])

    def upload(self, address: int, data: bytes) -> None:
        """Write bytes that host code knows: a constant."""
        self._constant_bytes += len(data)
        if self._constant_bytes > MAX_CONSTANT_BYTES and not self.gives_values:
            raise ValueError(
                f"the constants of solve take more than {MAX_CONSTANT_BYTES >> 20} MiB: compute large tables in a "
                "kernel"
            )
        self._constants.append(blob_name(data))
        blobs[self._constants[-1]] = data
        self._do(Constant(to=self.place(address), constant=len(self._constants) - 1))

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
        blob = blob_name(ptx)
        blobs[blob] = ptx
        code = Code(ptx=blob, ptxas=ptxas)
        _loaded.append(Kernel(name=name, arch=self.architecture, code=code, shared_bytes=shared_bytes))
        number = len(_loaded) - 1
        if self.replayer is None:
            return Loaded(number, _SOME_REGISTERS, 0, MOST_THREADS)
        return Loaded(number, *self.replayer.load(name, binary, shared_bytes, program_line()))

    def launch(self, kernel: int, grid: tuple[int, int, int], shape: Shape, arguments: Sequence[Argument]) -> None:
        one: Literal[1] = 1
        values: list[Any] = [(kind, bits) if kind else self.place(bits) for kind, bits in arguments]
        self._do(
            Launch(
                kernel=kernel,
                grid=grid,
                block=(shape.threads, one, one),
                shared_bytes=shape.shared_bytes,
                cluster=shape.cluster,
                cooperative=shape.cooperative,
                arguments=tuple(values),
            )
        )

    def synchronize(self) -> None:
        if self.replayer is not None and self._live:
            self.replayer.synchronize()


def _numbered(used: Iterable[int]) -> dict[int, int]:
    """The numbers in a plan of what is used, in the order of its first use."""
    return {each: number for number, each in enumerate(dict.fromkeys(used))}


def _buffers_of(step: Step) -> Iterator[int]:
    match step:
        case Launch():
            used = [first for first, _ in step.arguments if isinstance(first, int)]
        case Copy():
            used = [step.to[0], step.source[0]]
        case _:
            used = [step.to[0]]
    return (buffer for buffer in used if buffer >= 0)


def _renumbered(step: Step, kernels: dict[int, int], constants: dict[int, int], buffers: dict[int, int]) -> Step:
    def moved(place: Any) -> Any:
        return (buffers[place[0]], place[1]) if isinstance(place[0], int) and place[0] >= 0 else place

    match step:
        case Launch():
            changes = {"kernel": kernels[step.kernel], "arguments": tuple(map(moved, step.arguments))}
        case Copy():
            changes = {"to": moved(step.to), "source": moved(step.source)}
        case Constant():
            changes = {"to": moved(step.to), "constant": constants[step.constant]}
        case _:
            changes = {"to": moved(step.to)}
    return step.model_copy(update=changes)


_used: list[Recorder] = []


def use(recorder: Recorder) -> None:
    """Let this process's submission use a recorder."""
    _used[:] = [recorder]


def current() -> Recorder:
    return _used[0]
