"""Tasks in jobs of a Slurm cluster: one array task per task, results as files.

Theory of operation. This process, on the submitting machine, submits job arrays through submitit, which writes each
task and its setup into a folder that all nodes share; the tasks that were given at the same time are one array. A job
writes its result there as JSON. Jobs do not use the store, since SQLite's locks do not hold over NFS.

Three sources together show whether a job is still working: the state that Slurm reports, the result that the job
writes, and the file that it touches every five seconds as a heartbeat. No single one is enough, and no accounting
database is needed. If there is a result, it counts, whatever Slurm reports. Without a result, a job is lost in three
cases:

    - It ended: it crashed, was cancelled or preempted, ran out of time, or its node is gone.
    - Slurm reports it as running, but its last heartbeat is over 40 seconds old. It is then cancelled.
    - It had begun, and Slurm put it back into the queue because its node failed. It is then cancelled, too.

A lost job is a fault of the machine (see `classes.schedule`): its task gets another job as often as the assignment's
cluster section allows. If Slurm does not answer a poll, the next poll looks for lost jobs.

If this process is killed, its jobs continue. The next run first stores the records that they have written, and cancels
the jobs that are still running, since they may follow older rules.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.paths import shown
from grader.classes.executors.executor import Died, Task
from grader.classes.executors.job import do_task
from grader.classes.executors.job_files import RunFiles
from grader.classes.executors.job_states import WAITING, JobState, ask, cancel, states
from grader.course.assignment import Assignment, Cluster
from grader.grading.setup import Setup
from grader.records.conditions import conditions_of
from grader.records.record import Record
from grader.store import Store

POLL_S = 2.0
SILENT_S = 40.0
"""A running job is lost if its last heartbeat is older than this, which is eight times `BEAT_S`."""
GRACE_S = 10.0
"""After a job has ended, its result is awaited for this long: NFS caches directory listings, so it may appear late."""
_UNANSWERED_S = 300.0
_ARRAY = 500
"""Tasks per array; Slurm's default MaxArraySize is 1001."""


@dataclass(eq=False)
class SlurmExecutor:
    """A place for one task at a time, each in a job of its own. `number` and `job` are those of the current one."""

    jobs: SlurmJobs
    setup: Setup
    task: Task | None = None
    number: int = 0
    job: str = ""
    ended_at: float | None = None
    answer: object = "open"

    @property
    def where(self) -> str:
        return f"job {self.job}"

    @property
    def poll_s(self) -> float:
        return 0.0 if self.jobs.fresh or self.answer is not None else POLL_S

    def submit(self, task: Task) -> None:
        self.task, self.answer, self.ended_at = task, None, None
        self.jobs.waiting.append(self)
        self.jobs.fresh = True

    def control(self) -> None:
        """A job has run the control program on its node; here Slurm itself must answer."""
        self.answer = ""
        try:
            ask()
        except MachineFault as fault:
            self.answer = str(fault)

    def fileno(self) -> None:
        return None

    def done(self) -> bool:
        if self.answer is None:
            self.jobs.look()
        return self.answer is not None

    def result(self) -> object:
        return self.answer

    def cancel(self) -> None:
        if self.answer is None:
            self.jobs.drop(self)
            self.answer = Died("The job was cancelled.")

    def kill(self) -> None:
        pass

    def close(self) -> None:
        self.jobs.cancel_dropped()


@dataclass(eq=False)
class SlurmJobs:
    """The jobs of one run."""

    assignment: str
    rules: Cluster
    files: RunFiles
    waiting: list[SlurmExecutor] = field(default_factory=list)
    running: list[SlurmExecutor] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """Jobs that are still to be cancelled."""
    fresh: bool = False
    """Whether there are tasks that Slurm has not been asked to run yet."""
    submitted: int = 0
    looked: float = -POLL_S
    answered: float = field(default_factory=time.monotonic)

    @property
    def most_tries(self) -> int:
        """How many jobs a task may have before a fault of the machine is final."""
        return 1 + self.rules.retries

    def executor(self, name: str, setup: Setup) -> SlurmExecutor:
        """A new place for tasks."""
        return SlurmExecutor(self, setup)

    def look(self) -> None:
        """Submit what waits, and look for results and lost jobs, at most every POLL_S. Raises MachineFault if Slurm
        refuses the jobs, which wait on, or has not answered for long."""
        self.cancel_dropped()
        if not self.fresh and time.monotonic() - self.looked < POLL_S:
            return
        self.fresh, self.looked = False, time.monotonic()
        self._collect()
        try:
            known = states(each.job for each in self.running)
            self.answered = time.monotonic()
            self._look_for_lost(known)
        except MachineFault as fault:
            if time.monotonic() - self.answered > _UNANSWERED_S:
                raise MachineFault(
                    f"Slurm has not answered for {_UNANSWERED_S / 60:.0f} minutes: {fault} The jobs continue; the same "
                    "command collects their results."
                ) from fault
        while self.waiting:
            self._submit(self.waiting[:_ARRAY])
            del self.waiting[:_ARRAY]

    def _submit(self, part: list[SlurmExecutor]) -> None:
        """Submit tasks as an array."""
        try:
            executor, folder = self._submitit(), str(self.files.folder)
            with executor.batch():
                numbered = list(enumerate(part, start=self.submitted))
                jobs = [executor.submit(do_task, folder, number, each.setup, each.task) for number, each in numbered]
            self.files.note_job(jobs[0].job_id.split("_")[0])
        except Exception as error:  # submitit reports sbatch's errors as several kinds of exception
            raise MachineFault(f"Slurm refused the jobs: {error}") from error
        self.submitted += len(part)
        self.running += part
        for (number, each), job in zip(numbered, jobs, strict=True):
            each.number, each.job = number, job.job_id

    def _submitit(self) -> Any:
        rules = self.rules
        package = shlex.quote(str(Path(__file__).resolve().parents[3]))
        parameters = {
            "job_name": f"grader-{self.assignment}",
            "partition": rules.partition,
            "account": rules.account,
            "constraint": rules.constraint,
            "gres": rules.gres,
            "time": rules.time_minutes,
            "cpus_per_task": rules.cpus,
            "mem": f"{rules.memory_gb}GB" if rules.memory_gb else None,
            "array_parallelism": rules.at_once,
            "stderr_to_stdout": True,
            "setup": [f"export PYTHONPATH={package}${{PYTHONPATH:+:$PYTHONPATH}}"],
        }
        # Neither -P nor that path lets Python import modules from the working folder, where submissions may be.
        executor = slurm_executor()(folder=self.files.logs, python=f"{shlex.quote(sys.executable)} -P")
        executor.update_parameters(**{name: value for name, value in parameters.items() if value is not None})
        return executor

    def _collect(self) -> None:
        """Take the results that have arrived."""
        for each in list(self.running):
            assert each.task is not None
            try:
                answer = self.files.read_result(each.number, each.task)
            except ValidationError as error:
                answer = GraderFault(f"{each.where}: its result is damaged: {error}")
            if answer is None and (fault := self.files.read_fault(each.number)) is not None:
                answer = MachineFault(f"{each.where}: {fault}")
            if answer is not None:
                self._answer(each, answer)

    def _answer(self, each: SlurmExecutor, answer: object) -> None:
        self.running.remove(each)
        each.answer = answer

    def _look_for_lost(self, known: dict[str, JobState]) -> None:
        now = time.monotonic()
        for each in list(self.running):
            job = known.get(each.job)
            silent = self.files.silent_s(each.number)
            if job is not None and job.alive:
                each.ended_at = None
                if silent is None:  # it has not begun
                    continue
                if job.state in WAITING:  # Slurm would begin it again, but only some minutes later
                    why = f"it had begun, and Slurm put it back into its queue ({job.reason or 'no reason given'})"
                elif job.state == "RUNNING" and silent >= SILENT_S:
                    why = f"no heartbeat for {silent:.0f} s on {job.node}, though Slurm reports it as running"
                else:
                    continue
                cancel([each.job])
            else:
                each.ended_at = each.ended_at or now
                if now - each.ended_at < GRACE_S:
                    continue
                why = f"it ended without a result: {_ending(job)}"
            self._answer(each, MachineFault(f"{each.where}: {why}."))

    def drop(self, each: SlurmExecutor) -> None:
        """Forget a task, and cancel its job soon."""
        if each in self.waiting:
            self.waiting.remove(each)
        else:
            self.running.remove(each)
            self.dropped.append(each.job)

    def cancel_dropped(self) -> None:
        """Cancel the jobs whose tasks were dropped."""
        dropped, self.dropped = self.dropped, []
        with suppress(Exception):
            cancel(dropped)


def _ending(job: JobState | None) -> str:
    if job is None:
        return "Slurm no longer knows it"
    words = {
        "CANCELLED": "it was cancelled",
        "TIMEOUT": "it ran out of time (cluster.time_minutes)",
        "NODE_FAIL": "its node failed",
        "PREEMPTED": "it was preempted",
        "OUT_OF_MEMORY": "it ran out of memory (cluster.memory_gb)",
        "COMPLETED": "Slurm reports it as completed",
    }
    return words.get(job.state, f"Slurm reports it as {job.state}") + (f" on {job.node}" if job.node else "")


def slurm_executor() -> Any:
    """submitit's class for Slurm. Raises UsageError unless submitit and Slurm's commands are installed."""
    try:
        from submitit import SlurmExecutor
    except ImportError as error:
        raise UsageError("--cluster slurm needs submitit: pip install 'cuda-homework-grader[slurm]'.") from error
    if SlurmExecutor.affinity() < 0:
        raise UsageError("--cluster slurm needs a machine with Slurm's commands: there is no srun on PATH here.")
    return SlurmExecutor


def open_jobs(rules: Assignment, folder: Path, store: Store | None) -> tuple[SlurmJobs, list[str]]:
    """A run's jobs, on the cluster that the assignment's `cluster:` describes, with their files below `folder`. Earlier
    runs that were killed there are ended; what they have graded goes into `store`, as the returned sentences say.
    Raises UsageError when Slurm or the folder cannot be used."""
    slurm_executor()  # without Slurm, this fails now rather than with the first submission
    try:
        folder.mkdir(parents=True, exist_ok=True)
        said = [_take_in(jobs, store) for jobs in sorted(folder.glob("*/jobs"))]
        files = RunFiles(folder / time.strftime(f"{rules.name}-%Y%m%d-%H%M%S-{time.time_ns() % 1000:03}"))
        files.logs.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"The cluster's folder {shown(folder)} cannot be used: {error.strerror}; set cluster.folder in "
            "assignment.yaml to a folder that all nodes share."
        ) from error
    return SlurmJobs(rules.name, rules.cluster or Cluster(), files), said


def shared_folder(rules: Assignment) -> Path:
    """The folder of the assignment's cluster section."""
    return Path((rules.cluster or Cluster()).folder).expanduser().resolve()


def _take_in(jobs: Path, store: Store | None) -> str:
    """Cancel the jobs of a run that was killed. Store the records that these jobs have written; without a store, remove
    its files."""
    files = RunFiles(jobs.parent)
    cancel(files.noted_jobs())
    added = 0
    if store is None:
        shutil.rmtree(files.folder, ignore_errors=True)
        return ""
    for result in sorted(files.folder.glob("result-*.json")):
        with suppress(ValidationError, OSError, GraderFault):
            record = Record.model_validate_json(result.read_bytes())
            number = store.find(record.assignment, record.submission.id, record.submission.sha256)
            added += number is not None and store.add_record(number, conditions_of(record), record)
    jobs.unlink(missing_ok=True)
    return f"Results collected from the interrupted run {files.folder.name}: {added}."
