"""Makes a request to end reliable, whatever Python is doing at that moment.

A signal's exception may be raised in a callback that swallows exceptions: a destructor, or a hook that runs around a
fork (logging has one). Python then prints a traceback and drops the exception, and with it the request to end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

_SOON_S = 0.02
_SIGNALS = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}


def never_drop_a_signal() -> None:
    """From now on, send the signal again whenever Python drops a KeyboardInterrupt or SystemExit."""
    sys.unraisablehook = _ask_again


def _ask_again(dropped: sys.UnraisableHookArgs) -> None:
    again = _SIGNALS.get(dropped.exc_type)
    if again is None:
        sys.__unraisablehook__(dropped)
    else:
        timer = threading.Timer(_SOON_S, os.kill, (os.getpid(), again))  # after the callback returns
        timer.daemon = True
        timer.start()
