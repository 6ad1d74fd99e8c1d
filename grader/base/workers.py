"""Processes for heavy numpy: one core each.

numpy's BLAS starts as many threads as there are cores, and for the small tiles of an oracle they get in each
other's way; how many it may use is fixed when numpy is imported. So the work is done by processes started with
one BLAS thread each, fed with one small task at a time over a pipe. (multiprocessing would fork a parent with
threads, or import the caller's main module again.) A worker is `python -m grader.base.workers`; it reads pickled
(function, task) pairs from stdin, which only its parent writes, and ends when the pipe closes, so it never
outlives its parent. Tasks write their results into files at their own offsets; only a number comes back.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, TypeVar

from grader import ONE_BLAS_THREAD
from grader.base.errors import GraderFault, MachineFault

Task = TypeVar("Task")
Work = Callable[[Task], int]
"""A module-level function. What it returns (bytes done, say) is added to the progress."""
Answer = int | BaseException
"""What a task returned, or raised."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    work: Work[Task],
    tasks: Iterable[Task],
    processes: int,
    done: Callable[[int], None] = lambda amount: None,
) -> None:
    """Runs every task in `processes` processes, or in this one when that is 0.

    The first error of a task ends the others and is raised here. Ctrl-C ends them too. `done` is called in this thread.
    Raises MachineFault when a process ends before its task is done.
    """
    if processes == 0:
        for task in tasks:
            done(work(task))
        return
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
    crew = [_start() for _ in range(min(processes, waiting.qsize()))]
    try:
        for worker in crew:
            threading.Thread(target=_feed, args=(worker, work, waiting, answers), daemon=True).start()
        running = len(crew)
        while running:
            answer = answers.get()
            if answer is None:
                running -= 1
            elif isinstance(answer, BaseException):
                raise answer
            else:
                done(answer)
    finally:  # a thread ends when its worker is killed, even if tasks are waiting
        for worker in crew:
            worker.kill()
        for worker in crew:
            worker.wait()


def _feed(
    worker: subprocess.Popen[bytes],
    work: Work[Task],
    waiting: queue.SimpleQueue[Task],
    answers: queue.SimpleQueue[Answer | None],
) -> None:
    """Gives a worker one task after another until none is waiting; queues its answers, and None at the end."""
    try:
        assert worker.stdin and worker.stdout
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                break
            pickle.dump((work, task), worker.stdin)
            worker.stdin.flush()
            answers.put(pickle.load(worker.stdout))
    except (EOFError, OSError, pickle.PickleError) as error:
        fault = MachineFault(
            "A worker process of the grader ended before its task was done (killed, or out of memory); "
            "free memory, then give the same command again."
        )
        fault.__cause__ = error
        answers.put(fault)
    finally:
        answers.put(None)


def _start() -> subprocess.Popen[bytes]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package, *filter(None, sys.path)])  # the worker can import what this process can
    return subprocess.Popen(
        [sys.executable, "-m", "grader.base.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_BLAS_THREAD, "PYTHONPATH": path},
    )


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    while True:
        try:
            work, task = pickle.load(requests)
        except EOFError:
            return
        except Exception as error:
            pickle.dump(GraderFault(f"A worker cannot read its task: {type(error).__name__}: {error}"), replies)
            replies.flush()
            return
        answer: Any
        try:
            answer = work(task)
        except Exception as error:
            answer = _sendable(error)
            answer.add_note(f"In a worker process:\n{traceback.format_exc()}")  # a pickle loses the traceback
        pickle.dump(answer, replies)
        replies.flush()


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return GraderFault(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    # Whatever a task prints goes to stderr: stdout is the parent's pipe.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError):  # the parent was killed: nothing to report to
        _serve(sys.stdin.buffer, pipe)
    os._exit(0)
