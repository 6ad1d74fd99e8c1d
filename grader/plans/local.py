"""`grader run FILE.py`: a submission's file on this machine's device, at once and with values, as any Python program.

Nothing here is confined: it is the user's own file, on the user's machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from grader import emulator
from grader.base.process import Completed
from grader.plans import driver, lines
from grader.plans.compiler import Refused
from grader.plans.failures import described
from grader.plans.host import open_file
from grader.plans.recorder import Recorder, use
from grader.plans.refusals import refusal
from grader.plans.replayer import DeviceFailed, Replayer


def main() -> None:
    """Run the file of the request in argv[1]; the arguments that follow are the file's."""
    request = json.loads(sys.argv[1])
    file, arguments = Path(request["file"]).resolve(), sys.argv[2:]
    driver.install(request["target"])
    emulated = request["ptxas"]
    loadable = partial(_library_of, request["target"], emulated, frozenset(request["checks"])) if emulated else bytes
    replayer = Replayer(request["replay"], os.environ, loadable, measures_time=not emulated)
    use(Recorder(request["target"].replace("cuda:", "sm_"), replayer, gives_values=True))
    code: Any = 0
    with tempfile.TemporaryDirectory(prefix="triton-") as cache_folder:
        os.environ["TRITON_CACHE_DIR"] = cache_folder
        try:
            open_file(file, "__main__", arguments)
        except SystemExit as ended:
            code = ended.code
        except DeviceFailed:
            code = 1  # the replayer has said why
        except BaseException as error:
            print(described(error, file), file=sys.stderr, end="")
            code = 1
    sys.stdout.flush()
    ended_with = replayer.close()
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.exit(code or ended_with)


@cache
def _library_of(target: str, ptxas: str, checks: frozenset[str], ptx: bytes) -> bytes:
    """The shared library of a kernel for the emulator."""
    with tempfile.TemporaryDirectory() as folder:
        work, written = Path(folder) / "work", Path(folder) / "written"
        work.mkdir()
        written.mkdir()
        try:
            made = emulator.compile_kernel(
                ptx.decode(),
                target=target,
                ptxas=ptxas,
                checks=checks,
                work=work,
                written=written,
                run=_run,
                below=lines.folder,
            )
        except emulator.CompileFailed as failed:
            raise Refused(refusal(failed.log, ptx.decode())) from None
        return made.read_bytes()


def _run(command: Sequence[str], folder: Path) -> Completed:
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    return Completed(done.returncode, done.stdout)
