"""Compiles the program that replays plans, once for each machine: for the emulator, or for a GPU."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from grader import sandbox
from grader.base.errors import MachineFault
from grader.sandbox.cache import kept

_SOURCES = Path(__file__).with_name("replay")
_LIMIT_S = 120


def replay_program(device: str, cuda_include: Path) -> Path:
    """The program for a `device`, "emulator" or "gpu", from the cache. Raises MachineFault if it does not compile."""
    content = b"".join(path.read_bytes() for path in sorted(_SOURCES.iterdir()) if path.is_file())
    key = hashlib.sha256(content + f"{platform.machine()}".encode()).hexdigest()[:16]

    def make(folder: Path) -> Path:
        made = folder / "replay"
        flags = ("-std=c++17", "-O2", "-g1", "-Wall", "-Wextra", "-isystem", str(cuda_include))
        sources = (str(_SOURCES / "replay.cc"), str(_SOURCES / f"on_{device}.cc"))
        run = sandbox.linker(_LIMIT_S, readable=(_SOURCES, cuda_include))
        done = run(["g++", *flags, "-o", str(made), *sources, "-ldl"], folder)
        if done.exit_code != 0:
            raise MachineFault(f"g++ cannot compile the replayer of Python submissions:\n{done.output[:4000]}")
        return made

    return kept("native", f"replay-{device}-{key}", make)
