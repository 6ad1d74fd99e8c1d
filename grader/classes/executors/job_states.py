"""Asks Slurm about jobs, without an accounting database: `scontrol` knows current and recent jobs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from grader.base.errors import MachineFault

_COMMAND_S = 30
ALIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD",
                   "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT", "REQUEUE_FED"})  # fmt: skip


WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})


@dataclass(frozen=True)
class JobState:
    """The state of an array's task: Slurm's name for it, the node, and the reason why the task waits or ended."""

    state: str
    node: str = ""
    reason: str = ""

    @property
    def alive(self) -> bool:
        return self.state in ALIVE


def states(jobs: Iterable[str]) -> dict[str, JobState]:
    """The states of array tasks named `ARRAY_TASK`. Tasks that Slurm no longer knows are left out.

    Raises MachineFault when Slurm does not answer.
    """
    wanted = set(jobs)
    arrays = sorted({job.split("_")[0] for job in wanted})
    if not arrays:
        return {}
    found: dict[str, JobState] = {}
    for array in arrays:
        listing = _run(["scontrol", "show", "job", "-o", array])
        for line in listing.splitlines():
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            state = JobState(fields.get("JobState", ""), fields.get("NodeList", ""), fields.get("Reason", ""))
            if "ArrayTaskId" not in fields:  # submitit submits an array of one task as a plain job
                found[array] = state
            for task in _tasks(fields.get("ArrayTaskId", "")):
                found[f"{array}_{task}"] = state
    return {job: state for job, state in found.items() if job in wanted}


def ask() -> None:
    """Ask Slurm for its partitions. Raises MachineFault if it does not answer."""
    _run(["sinfo", "--noheader"])


def _tasks(words: str) -> Iterable[int]:
    """The task numbers in `3`, `5-9` or `0,4-6%2`: pending tasks of an array share one line of the listing."""
    for part in words.split("%")[0].split(","):
        if match := re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part):
            first, last, step = match.group(1), match.group(2) or match.group(1), match.group(3) or "1"
            yield from range(int(first), int(last) + 1, int(step))


def cancel(jobs: Iterable[str]) -> None:
    """Cancel jobs or arrays; those that have ended already are ignored."""
    wanted = sorted(set(jobs))
    if wanted:
        subprocess.run(["scancel", *wanted], capture_output=True, timeout=_COMMAND_S, check=False)


def _run(command: list[str]) -> str:
    """The command's output; '' if Slurm does not know the job."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except FileNotFoundError as error:
        raise MachineFault(
            f"{command[0]} was not found: --cluster slurm needs a machine with Slurm's commands."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MachineFault(f"Slurm did not answer {command[0]} within {_COMMAND_S} s.") from error
    if done.returncode != 0:
        if "Invalid job id" in done.stderr:
            return ""
        raise MachineFault(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout
