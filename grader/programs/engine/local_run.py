"""`grader run FILE.py`: a submission's file on this machine's device, at once and with values, as any Python program.

Only compilers are confined here: it is the user's own file, on the user's machine.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from grader.plans import driver
from grader.plans.failures import described
from grader.plans.host import open_file
from grader.plans.recorder import Recorder, use
from grader.plans.replayer import DeviceFailed, Replayer
from grader.programs.engine.interface import Engine
from grader.sandbox.budget import Budget
from grader.sandbox.scratch import scratch_folder

_COMPILING_S = 600


def main() -> None:
    """Run a file; argv has the engine, the file and the file's arguments."""
    engine: Engine = pickle.loads(base64.b64decode(sys.argv[1]))  # of this grader, which started the process
    file, arguments = Path(sys.argv[2]).resolve(), sys.argv[3:]
    recording, budget = engine.recording(), Budget(_COMPILING_S, "Compiling")

    @cache
    def library_of(ptx: bytes) -> bytes:
        with scratch_folder("run") as folder:
            (folder / "work").mkdir()
            return recording.loadable(ptx, (), file.parent, folder / "work", budget)

    driver.install(recording.target)
    replayer = Replayer(engine.replay(), bytes if engine.measures_time else library_of)
    use(Recorder(replayer, gives_values=True))
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
    sys.exit(code or ended_with)
