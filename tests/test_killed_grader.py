"""A grader that is killed leaves nothing: no process, no control group, no mount, no folder; and the next run works."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.sandbox import Job, Limits, bubblewrap, cgroup, run
from grader.sandbox.watcher import prefix_of
from tests.support.course import ROOT

PLAYED = """
import sys
from pathlib import Path
from grader import sandbox
from grader.sandbox import bubblewrap, Job, Limits
from grader.sandbox.scratch import scratch_folder
if sys.argv[2] == "without":
    bubblewrap.problem = lambda: "left out for this test"
print("ready", flush=True)
while True:
    with scratch_folder("killed", Path(sys.argv[1]), linger=True) as folder:
        script = "mkdir -p a/b; touch a/b/c; sleep {0} & (sleep {0} &) ; sleep 0.03; kill $!".format(sys.argv[3])
        sandbox.run(Job(("sh", "-c", script), folder), Limits(wall_s=30, memory_bytes=1 << 30))
"""


def left_by(pid: int, place: Path, seconds: str) -> list[str]:
    """What is there of the grader with this process id, and of its runs, which sleep for so many seconds."""
    found = [str(path) for folder in (place, *cgroup.parents()) for path in folder.glob(f"{prefix_of(pid)}*")]
    found += [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(place) in line]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if f"sleep {seconds}" in words or prefix_of(pid) in words:
                    found.append(f"process {entry.name}: {words}")
    return found


@pytest.mark.parametrize(("confined", "seconds"), [("with", "71.5"), ("without", "72.5")])  # they may run side by side
def test_ten_kills_at_random_moments_leave_nothing(confined: str, seconds: str, tmp_path: Path) -> None:
    if confined == "with" and bubblewrap.problem() is not None:
        pytest.fail(f"bubblewrap is needed for this test: {bubblewrap.problem()}")
    dice, seen = random.Random(5), False
    for _ in range(10):
        grader = subprocess.Popen(
            [sys.executable, "-c", PLAYED, str(tmp_path), confined, seconds], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert grader.stdout is not None
        assert grader.stdout.readline() == b"ready\n"
        time.sleep(dice.uniform(0, 0.2))  # the moment is what is tested
        seen |= any(prefix_of(grader.pid) in what for what in left_by(grader.pid, tmp_path, seconds))
        os.kill(grader.pid, signal.SIGKILL)
        grader.wait()
        grader.stdout.close()
        for _ in range(500):  # the watcher takes a moment
            if not left_by(grader.pid, tmp_path, seconds):
                break
            time.sleep(0.01)
        assert left_by(grader.pid, tmp_path, seconds) == []
    assert seen, "nothing was ever there: this test looks in the wrong places"
    assert run(Job(("true",), tmp_path), Limits(wall_s=10)).exit_code == 0
