"""What the builder asks of its surroundings: to run compilers, to read what they wrote, to keep results.

`PlainHost` is for people who build their own programs. Whoever builds programs of strangers brings a `Host` that
confines compilers and readers. There is no default, so nobody takes the plain one by mistake.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Generic, ParamSpec, Protocol, TypeVar

from cudaemu.errors import Unreadable
from cudaemu.process import Completed, Runner, run_plainly

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ReaderLimits:
    """Limits of one call: processor time, address space, and the size of the answer as JSON."""

    cpu_s: int
    memory_bytes: int
    answer_bytes: int


@dataclass(frozen=True)
class Confined(Generic[Arguments, Answer]):
    """A module-level function that reads what strangers wrote. Only a host calls it. The annotation of its return type
    bounds the answer."""

    __wrapped__: Callable[Arguments, Answer]
    limits: ReaderLimits


def confined(
    *, cpu_s: int = 10, memory_bytes: int = 1 << 30, answer_bytes: int = 1 << 20
) -> Callable[[Callable[Arguments, Answer]], Confined[Arguments, Answer]]:
    """Let only hosts call a function. It raises Unreadable for bytes that it refuses."""
    return lambda function: Confined(function, ReaderLimits(cpu_s, memory_bytes, answer_bytes))


class Host(Protocol):
    """The surroundings of a build."""

    def run(self, command: Sequence[str], folder: Path) -> Completed:
        """Run a compiler in `folder`, as a Runner does. Raises Stopped if it was stopped at a limit."""

    def read(self, reader: Confined[Arguments, Answer], *words: Arguments.args, **named: Arguments.kwargs) -> Answer:
        """Call a reader. Raises Unreadable."""

    def open(self, path: Path, most_bytes: int) -> IO[bytes]:
        """Open a file that a compiler left. Raises Unreadable, with a phrase that follows the file's name."""

    def claim(self, made: Path, target: Path) -> bool:
        """Move a file that a compiler left to `target`, and return whether it was there."""

    def kept(self, kind: str, name: str, make: Callable[[Path], Path]) -> Path:
        """The entry `name` of the cache. `make` gets an empty folder that compilers of other programs cannot see, and
        returns what it made there. An entry's mtime is the time of its last use."""

    def entries(self, kind: str, prefix: str) -> Sequence[Path]:
        """The cache's entries whose names begin with `prefix`."""


def _own_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cudaemu"


@dataclass(frozen=True)
class PlainHost:
    """A Host without limits, whose cache is never emptied."""

    runner: Runner = run_plainly
    cache: Path = field(default_factory=_own_cache)

    def run(self, command: Sequence[str], folder: Path) -> Completed:
        return self.runner(command, folder)

    def read(self, reader: Confined[Arguments, Answer], *words: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return reader.__wrapped__(*words, **named)

    def open(self, path: Path, most_bytes: int) -> IO[bytes]:
        if (size := path.stat().st_size) > most_bytes:
            raise Unreadable(f"is {size:,} bytes, expected at most {most_bytes:,}")
        return path.open("rb")

    def claim(self, made: Path, target: Path) -> bool:
        if there := made.is_file():
            made.rename(target)
        return there

    def kept(self, kind: str, name: str, make: Callable[[Path], Path]) -> Path:
        entry = self.cache / kind / name
        if not entry.exists():
            entry.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=entry.parent) as folder:
                made = make(Path(folder))
                try:
                    made.rename(entry)
                except OSError:  # another build made the same folder meanwhile
                    if not entry.is_dir():
                        raise
        return entry

    def entries(self, kind: str, prefix: str) -> Sequence[Path]:
        return sorted((self.cache / kind).glob(f"{prefix}*"))
