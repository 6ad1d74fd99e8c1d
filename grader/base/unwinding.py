"""Makes sure that the grader ends on Ctrl-C or SIGTERM, whatever Python is doing when the signal arrives.

Two things can get in the way. A signal's exception (KeyboardInterrupt, SystemExit) may be raised in a callback that
swallows exceptions: a destructor, or a hook that runs around a fork (logging has one). Python then prints a traceback
and drops the exception. And before Python ends, it waits for threads that run compilers, which can take minutes.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

_SOON_S = 0.02
_UNWINDING_S = 20.0
"""The time for an orderly end: ending the workers of a class, or cancelling jobs of a cluster, takes a few seconds."""
_SIGNALS = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


def never_drop_a_signal() -> None:
    """From now on, send the signal again whenever Python drops a KeyboardInterrupt or SystemExit."""
    sys.unraisablehook = _ask_again


def end_at_last(code: int, after_s: float = _UNWINDING_S) -> None:
    """End the process with `code` if it still runs after `after_s` seconds. The sandbox's watcher then kills the
    programs that still run and removes their folders, as after SIGKILL."""
    timer = threading.Timer(after_s, os._exit, (code,))
    timer.daemon = True
    timer.start()


def _ask_again(dropped: sys.UnraisableHookArgs) -> None:
    again = _SIGNALS.get(dropped.exc_type)
    if again is None:
        sys.__unraisablehook__(dropped)
    else:
        timer = threading.Timer(_SOON_S, os.kill, (os.getpid(), again))  # late enough that the callback has returned
        timer.daemon = True
        timer.start()
