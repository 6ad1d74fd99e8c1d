# the folder of constants and kernels leads out of the sandbox, to files that only the grader can read
# expect: compile_error
import atexit
import json
import os
import shutil
from pathlib import Path

import torch


def out():
    words = Path("/proc/self/cmdline").read_bytes().decode().split("\0")
    return Path(json.loads(Path(next(word for word in words if word.endswith("request.json"))).read_text())["out"])


def swap():
    shutil.rmtree(out() / "blobs")
    os.symlink("/tmp", out() / "blobs")


def solve(x, y, rows, columns):
    y.copy_(torch.tensor([0.5] * y.numel()).reshape(y.shape))
    atexit.register(swap)
