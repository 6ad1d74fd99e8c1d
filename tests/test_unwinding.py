"""A request to end that arrives where Python drops exceptions is not lost, and nobody sees a traceback of it."""

import subprocess
import sys

import pytest

from tests.support.course import ROOT

PROGRAM = """
import os, signal, sys
from grader.base.unwinding import never_drop_a_signal

never_drop_a_signal()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

class Dropping:
    def __del__(self):
        os.kill(os.getpid(), signal.{signal})
        for _ in range(1000):
            pass

try:
    dropping = Dropping()
    del dropping
    signal.pause()
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_in_a_destructor_still_ends_the_program_and_prints_nothing(signal: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{signal}", signal)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_thread_that_never_ends_does_not_keep_the_program_from_ending() -> None:
    waiting = """
import sys, threading
from grader.base.unwinding import end_at_last

threading.Thread(target=threading.Event().wait).start()
end_at_last(143, 0.1)
sys.exit(0)
"""
    assert subprocess.run([sys.executable, "-c", waiting], cwd=ROOT, check=False).returncode == 143
