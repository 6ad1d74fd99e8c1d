"""Worker processes: each does one task at a time and answers over its pipe.

Processes, not threads: the sandbox kills every orphan it inherits, which must not be another submission's; and a
worker that is killed, or runs out of memory, costs one try of one submission and no more. Workers are their own
sessions, so Ctrl-C reaches the coordinator alone, which ends them with SIGTERM: a worker then kills what it runs. When
the coordinator itself is killed, the kernel sends workers the same signal (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from grader.base.errors import MachineFault
from grader.classes.batch.setup import Setup
from grader.classes.batch.work import Answer, Task

_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Done:
    """What came of a task: an answer, or the fault that stood in the way. `died`: the worker is gone."""

    worker: Worker
    task: Task
    answer: Answer | Exception
    died: bool = False


@dataclass(eq=False)
class Worker:
    """One process. Made in the main thread, whose end is the signal to die."""

    name: str
    setup: Setup
    done: queue.Queue[Done]
    _inbox: queue.Queue[Task | None] = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        package = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join([package, *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grader.classes.batch.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        threading.Thread(target=self._talk, daemon=True).start()

    def give(self, task: Task) -> None:
        """Start on `task`; its Done comes into the queue."""
        self._inbox.put(task)

    def end(self) -> None:
        """Ask it to end now; `join` waits."""
        self._inbox.put(None)
        self._process.terminate()

    def join(self) -> None:
        """Wait for its end, not for ever."""
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _talk(self) -> None:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        first = True
        while (task := self._inbox.get()) is not None:
            try:
                if first:
                    pickle.dump(self.setup, stdin)
                    first = False
                pickle.dump(task, stdin)
                stdin.flush()
                self.done.put(Done(self, task, pickle.load(stdout)))
            except (EOFError, OSError, ValueError, pickle.PickleError):
                code = self._process.wait()
                how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                fault = MachineFault(
                    f"The grader's worker {self.name} ended in the middle of its work ({how}): was it killed, or did "
                    "the machine run out of memory?"
                )
                self.done.put(Done(self, task, fault, died=True))
                return
