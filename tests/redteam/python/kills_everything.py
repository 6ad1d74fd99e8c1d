# Kills its parents and every process that it may.
# expect: wrong_answer | runtime_error; refused
import os
import signal

write_zeros()
if not BUILDING:
    for pid in (os.getppid(), 1, -1):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
