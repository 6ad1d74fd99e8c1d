"""Compiling and running the CUDA programs of these tests. Executables are kept between runs, by content."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.base.process import Completed
from grader.emulator import compile_program, runtime_identity
from grader.programs.toolkit import find_toolkit

HERE = Path(__file__).parent


def run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Completed(done.returncode, done.stdout)


def runner() -> list[str]:
    return shlex.split(os.environ.get("GRADER_TEST_RUNNER", ""))


def nvcc() -> Path:
    return find_toolkit().nvcc


def build(
    *sources: Path,
    flags: Sequence[str] = ("-O3", "-std=c++17"),
    sanitize: frozenset[str] = frozenset({"memory", "sync"}),
    count: bool = False,
    target: str = "sm_80",
) -> Path:
    """The executable of some .cu files."""
    settings = repr((tuple(flags), sorted(sanitize), count, target))
    digest = hashlib.sha256(runtime_identity().encode() + settings.encode())
    headers = {h for path in (HERE / "conformance/any.cu", *sources) for h in path.parent.glob("*.*h")}
    headers |= {h for path in sources for h in path.parent.parent.glob("*.cuh")}
    for path in (*sources, *sorted(headers)):
        digest.update(path.read_bytes())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grader" / "test-programs"
    output = folder / f"{sources[0].stem}-{digest.hexdigest()[:20]}"
    if output.exists():
        return output
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{output.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run side by side need the same program
        if not output.exists():
            work = folder / f"{output.name}.work"
            shutil.rmtree(work, ignore_errors=True)  # of a run that was stopped
            made = compile_program(
                sources, work / "program", work=work, nvcc=nvcc(), run=run, flags=flags, target=target,
                sanitize=sanitize, count=count,
            ).path  # fmt: skip
            made.replace(output)
            shutil.rmtree(work)
    return output


@dataclass
class Execution:
    """What a program did."""

    exit_code: int
    output: str
    errors: str
    trace: list[dict[str, Any]] = field(default_factory=list)

    def diagnostics(self, tool: str | None = None) -> list[dict[str, Any]]:
        return [t for t in self.trace if t["kind"] == "diagnostic" and tool in (None, t["tool"])]

    def kernels(self) -> list[dict[str, Any]]:
        return [t for t in self.trace if t["kind"] == "kernel"]


def execute(program: Path, *arguments: str, folder: Path, timeout_s: float = 60, **environment: str) -> Execution:
    """GRADER_TEST_RUNNER is a command to put before the program's: qemu-aarch64 -L …, say."""
    trace = folder / "trace.jsonl"
    trace.unlink(missing_ok=True)
    done = subprocess.run(
        [*runner(), str(program), *arguments], cwd=folder, capture_output=True, text=True, errors="replace",
        check=False, timeout=timeout_s, env={**os.environ, "GRADER_TRACE": str(trace), **environment},
    )  # fmt: skip
    lines = [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []
    return Execution(done.returncode, done.stdout, done.stderr, lines)


def names_in(source: Path) -> list[str]:
    """Names of the TESTs in a conformance file."""
    import re

    return re.findall(r"^TEST\((\w+)\)", source.read_text(), re.M)
