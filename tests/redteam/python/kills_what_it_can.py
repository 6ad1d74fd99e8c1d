# host code kills every process that it reaches, its own last
# expect: compile_error
import os
import signal


def solve(x, y, rows, columns):
    os.kill(os.getppid(), signal.SIGKILL)
    os.kill(-1, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
