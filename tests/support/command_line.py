"""The command `grader`, as tests call it: within this process, or as a process of its own.

Within this process it answers at once, since modules are imported and nvcc has been asked for its version. What a
process begins with (its PATH, its locale, its descriptors, signals) needs `grader_process`.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from grader.base.paths import course_root
from grader.commands.cli import main
from tests.support.course import QUICK, ROOT


@dataclass(frozen=True)
class Said:
    """What a command line ended with."""

    code: int
    out: str
    err: str


def grader(*words: str | Path, cwd: Path = ROOT, **environment: str) -> Said:
    """`grader WORDS…` in `cwd`, with these changes to the environment."""
    interrupt, unraisable = signal.getsignal(signal.SIGINT), sys.unraisablehook
    with pytest.MonkeyPatch.context() as patch, _captured(1, "stdout") as out, _captured(2, "stderr") as err:
        patch.chdir(cwd)
        for name, value in environment.items():
            patch.setenv(name, value)
        course_root.cache_clear()
        try:
            main([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
        finally:
            course_root.cache_clear()
            signal.signal(signal.SIGINT, interrupt)
            sys.unraisablehook = unraisable
        said = Said(code if isinstance(code, int) else 0, _text(out), _text(err))
    return _without_traceback(said)


def grader_process(*words: str | Path, cwd: Path = ROOT, **environment: str) -> Said:
    """The same as a process of its own."""
    command = [sys.executable, "-m", "grader", *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return _without_traceback(Said(done.returncode, done.stdout, done.stderr))


def run(*words: object, code: int = 0) -> None:
    """`grader WORDS…` in this process, for tests that capture what it prints; it must end with `code`."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert (ended.value.code or 0) == code


def graded(program: Path, folder: Path, tests: str = QUICK, *words: str) -> dict[str, Any]:
    """The record of grading `program` with these options, on a GPU of the kind sm_80 by default; the command must
    succeed."""
    path = folder / "record.json"
    said = grader("grade", program, *(words or ("--arch", "sm_80")), "--tests", tests, "--json", path)
    assert said.code == 0, said.err
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def _without_traceback(said: Said) -> Said:
    assert "Traceback" not in said.out + said.err
    return said


@contextlib.contextmanager
def _captured(descriptor: int, name: str) -> Iterator[IO[bytes]]:
    """The stream `name` and its descriptor, which programs started here inherit, lead into a file."""
    stream = getattr(sys, name)
    stream.flush()
    before = os.dup(descriptor)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), descriptor)
        setattr(sys, name, io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), "utf-8", write_through=True))
        try:
            yield file
        finally:
            os.dup2(before, descriptor)
            os.close(before)
            setattr(sys, name, stream)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
