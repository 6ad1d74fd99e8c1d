"""The process that records a submission: `main` with the file of a request.

It runs the submission's file once and `solve` for each shape. In the folder `out` it leaves, for shape number N, either
N.json, a plan, or N.error, a message for the student; blobs/ has the blobs. If the file itself fails, `error` is all.
Nobody believes what this process leaves, since the submission's code runs in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from grader.plans import driver, recorder
from grader.plans.contract import Arguments
from grader.plans.failures import described
from grader.plans.host import open_file, record_shape
from grader.plans.recorder import Recorder, use
from grader.plans.replayer import Replayer


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_bytes())
    file, out = Path(request["file"]), Path(request["out"])
    (out / "blobs").mkdir()
    driver.install(request["target"])
    command = request["replay"]
    replayer = Replayer(command, bytes) if command else None
    use(Recorder(replayer, is_before=True))
    try:
        names = open_file(file)
    except BaseException as error:
        (out / "error").write_text(described(error, file), errors="backslashreplace")
        return
    for number, shape in enumerate(request["shapes"]):
        made = Recorder(replayer)
        try:
            arguments = Arguments.model_validate(shape)
            made.samples = {
                buffer: Path(request["samples"], f"{number}-{buffer}").read_bytes()
                for buffer, part in enumerate(arguments.buffers) if part.file == "input" and replayer is not None
            }  # fmt: skip
            plan = record_shape(names, arguments, made)
        except BaseException as error:
            (out / f"{number}.error").write_text(described(error, file), errors="backslashreplace")
            continue
        finally:
            if replayer is not None:
                replayer.reset()
        while recorder.blobs:
            name, content = recorder.blobs.popitem()
            (out / "blobs" / name).write_bytes(content)
        (out / f"{number}.json").write_text(plan.model_dump_json(exclude_defaults=False))
