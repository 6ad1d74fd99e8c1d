"""Grades a class on a Slurm cluster: one array task per submission, results as files, one writer to the store.

Theory of operation. This process, on the submitting machine, reads and registers submissions, writes one order (the
submission and how to grade it) per submission into a folder that all nodes share, and submits job arrays through
submitit. A job grades its order and writes a record there as JSON. Only this process uses the store, since SQLite's
locks do not hold over NFS.

Three sources together show whether a job is still working: the state that Slurm reports, the record that the job
writes, and the file that it touches every five seconds as a heartbeat. No single one is enough, and no accounting
database is needed. If there is a record, it counts, whatever Slurm reports. Without a record, a job is lost in three
cases:

    - It ended: it crashed, was cancelled or preempted, ran out of time, or its node is gone.
    - Slurm reports it as running, but its last heartbeat is over 40 seconds old. It is then cancelled.
    - It had begun, and Slurm put it back into the queue because its node failed. It is then cancelled, too.

Lost jobs are submitted again as often as the assignment's cluster section allows, then reported as the machine's fault.
If Slurm does not answer a poll, the next poll looks for lost jobs.

If this process is killed, its jobs continue. The next run first stores the records that they have written, and cancels
the jobs that are still running, since their orders may follow older rules.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from grader.base.attempted import Failed, attempted
from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.paths import shown
from grader.base.progress import Progress
from grader.base.verdict import Fault
from grader.classes.batch.class_folder import Found
from grader.classes.batch.class_run import Outcome
from grader.classes.batch.desk import Desk
from grader.classes.batch.policy import Policy
from grader.classes.batch.roster import Student
from grader.classes.batch.view import View, duration, first_line
from grader.classes.batch.work import ReadTask
from grader.classes.cluster.job_files import Order, RunFiles
from grader.classes.cluster.job_states import WAITING, JobState, cancel, states
from grader.classes.cluster.task import grade_one
from grader.classes.retries import runs_again
from grader.course.assignment import Cluster
from grader.course.testcase import Case
from grader.grading.pipeline import grade
from grader.grading.session import Grading, open_grading
from grader.grading.setup import Setup
from grader.programs.build import failed_build
from grader.programs.submission import Submission, unreadable
from grader.records.conditions import conditions_of
from grader.records.record import Record
from grader.store import Store

POLL_S = 2.0
SILENT_S = 40.0
"""A running job is lost if its last heartbeat is older than this, which is eight times `BEAT_S`."""
GRACE_S = 10.0
"""After a job has ended, its record is awaited for this long: NFS caches directory listings, so it may appear late."""
_UNANSWERED_S = 300.0
_ARRAY = 500
"""Tasks per array; Slurm's default MaxArraySize is 1001."""


@dataclass(eq=False)
class SlurmTask:
    """A submission that the cluster grades. `job` is its current array task, `lost` lists why earlier ones failed."""

    number: int
    student: str
    submission: Submission
    stored_as: int
    cases: tuple[Case, ...]
    job: str = ""
    began: float = 0.0
    ended_at: float | None = None
    lost: list[str] = field(default_factory=list)


class Books(Protocol):
    """An object that receives the records of a run."""

    @property
    def view(self) -> View: ...

    def keep(self, number: int, record: Record) -> Record:
        """Store a record, and return it as it was stored; `number` is the submission's number in the store."""

    def finish(self, student: str, record: Record, where: str, seconds: float) -> None:
        """Count a submission that is finished."""


@dataclass(eq=False)
class SlurmRun:
    """One run on the cluster: its tasks, and how many tasks each node has graded (`nodes`)."""

    desk: Books
    rules: Cluster
    files: RunFiles
    grading: Grading
    tasks: dict[int, SlurmTask] = field(default_factory=dict)
    nodes: dict[str, float] = field(default_factory=dict)

    # ---- submitting ----

    def add(self, task: SlurmTask) -> None:
        """Write a task's order."""
        self.tasks[task.number] = task
        setup = replace(self.grading.setup, cases=task.cases)
        self.files.write_order(task.number, Order(setup, setup.engine.name, task.submission))

    def submit(self, tasks: Sequence[SlurmTask]) -> None:
        """Submit tasks as arrays."""
        for start in range(0, len(tasks), _ARRAY):
            part = tasks[start : start + _ARRAY]
            executor, files = self._executor(), self.files
            try:
                with executor.batch():
                    jobs = [executor.submit(grade_one, str(files.folder), task.number, len(task.lost)) for task in part]
            except Exception as error:  # submitit reports sbatch's errors as several kinds of exception
                raise MachineFault(f"Slurm refused the jobs: {error}") from error
            self.files.note_job(jobs[0].job_id.split("_")[0])
            for task, job in zip(part, jobs, strict=True):
                task.job, task.began, task.ended_at = job.job_id, time.monotonic(), None

    def _executor(self) -> Any:
        rules = self.rules
        package = shlex.quote(str(Path(__file__).resolve().parents[3]))
        parameters = {
            "job_name": f"grader-{self.grading.assignment.name}",
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

    # ---- waiting ----

    def wait(self) -> None:
        """Wait until every task has its record."""
        waiting = dict(self.tasks)
        answered = time.monotonic()
        while waiting:
            self._collect(waiting)
            if not waiting:
                return
            try:
                known = states(task.job for task in waiting.values())
                answered = time.monotonic()
                self._look_for_lost(waiting, known)
            except MachineFault as fault:
                if time.monotonic() - answered > _UNANSWERED_S:
                    raise MachineFault(
                        f"Slurm has not answered for {duration(_UNANSWERED_S)}: {fault} The jobs continue; the same "
                        "command collects their results."
                    ) from fault
            time.sleep(POLL_S)

    def _collect(self, waiting: dict[int, SlurmTask]) -> None:
        """Store the records that have arrived."""
        for task in list(waiting.values()):
            record = self.files.read_result(task.number)
            fault = self.files.take_fault(task.number) if record is None else None
            if record is not None:
                again = runs_again(record, len(task.lost), self.rules.retries)
                record = self.desk.keep(task.stored_as, record)
                if again:
                    self.files.result(task.number).unlink(missing_ok=True)
                    self._lose(task, "the machine failed during a test")
                    continue
                seconds = time.monotonic() - task.began
                self.nodes[record.machine.host] = self.nodes.get(record.machine.host, 0) + 1
                self.desk.finish(task.student, record, f"job {task.job}, {record.engine.device}", seconds)
                del waiting[task.number]
            elif fault is not None and self._lose(task, fault):
                del waiting[task.number]

    def _look_for_lost(self, waiting: dict[int, SlurmTask], known: dict[str, JobState]) -> None:
        now = time.monotonic()
        for task in list(waiting.values()):
            job = known.get(task.job)
            silent = self.files.silent_s(task.number, len(task.lost))
            if job is not None and job.alive:
                task.ended_at = None
                if silent is None:  # it has not begun
                    continue
                if job.state in WAITING:  # Slurm would begin it again, but only some minutes later
                    why = f"it had begun, and Slurm put it back into its queue ({job.reason or 'no reason given'})"
                elif job.state == "RUNNING" and silent >= SILENT_S:
                    why = f"no heartbeat for {silent:.0f} s on {job.node}, though Slurm reports it as running"
                else:
                    continue
                cancel([task.job])
            else:
                task.ended_at = task.ended_at or now
                if now - task.ended_at < GRACE_S:
                    continue
                why = f"it ended without a result: {_ending(job)}"
            if self._lose(task, why):
                del waiting[task.number]

    def _lose(self, task: SlurmTask, why: str) -> bool:
        """Handle a lost job: submit its task again or, after the last try, record the fault and return True."""
        task.lost.append(f"job {task.job}: {why}")
        if len(task.lost) <= self.rules.retries:
            self.desk.view.say(f"{task.student}, job {task.job}: {first_line(why)}. It will be submitted again.")
            self.submit([task])
            return False
        problem = f"Slurm lost it {len(task.lost)} times: {'; '.join(task.lost)}."
        self.finish_without_running(task, Fault.MACHINE, problem)
        return True

    def finish_without_running(self, task: SlurmTask, whose: Fault, problem: str) -> None:
        """Finish a task that no job can grade, with a record that says why."""
        grading = replace(self.grading, cases=task.cases)
        record = grade(grading, task.submission, Progress(), failed_build(whose, problem))
        record = self.desk.keep(task.stored_as, record)
        self.desk.finish(task.student, record, "the submitting machine", 0.0)


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


def grade_on_slurm(
    setup: Setup, found: Sequence[Found], store: Store, *, policy: Policy, roster: dict[str, Student], view: View
) -> Outcome:
    """Grade the submissions `found` into `store`, on the cluster that the assignment's `cluster:` describes. The
    testcases' files must be where jobs can read them. Raises MachineFault or UsageError when Slurm cannot be used."""
    rules = setup.assignment.cluster or Cluster()
    base = Path(rules.folder).expanduser().resolve()
    desk = Desk(setup, store, policy, roster, view)
    began = time.monotonic()
    try:
        base.mkdir(parents=True, exist_ok=True)
        for left in take_in(base, store):
            view.say(left)
        files = RunFiles(base / time.strftime(f"{setup.assignment.name}-%Y%m%d-%H%M%S-{time.time_ns() % 1000:03}"))
        files.logs.mkdir(parents=True)
    except OSError as error:
        raise UsageError(
            f"The cluster's folder {shown(base)} cannot be used: {error.strerror}; set cluster.folder in "
            "assignment.yaml to a folder that all nodes share."
        ) from error
    with open_grading(setup) as grading:
        cluster = SlurmRun(desk, rules, files, grading)
        chosen = desk.open(found)
        if plan := desk.plan(chosen):
            view.say(plan)
        for one in chosen:
            _take(cluster, desk, one)
        try:
            cluster.submit(list(cluster.tasks.values()))
            if cluster.tasks:
                view.say(f"Submissions with Slurm: {len(cluster.tasks)}. Their files are in {shown(files.folder)}.")
            cluster.wait()
        except BaseException:
            with suppress(Exception):
                cancel(files.noted_jobs())
            raise
    files.jobs.unlink(missing_ok=True)
    elapsed = duration(time.monotonic() - began)
    shares = [f"{host}: {count:g} graded in {elapsed}." for host, count in sorted(cluster.nodes.items())]
    return Outcome(desk.tally, tuple(desk.faulted.items()), {}, (*shares, *desk.notes(found)))


def _take(run: SlurmRun, desk: Desk, found: Found) -> None:
    """Read and register a submission and, if it must be graded, make it a task of the run."""
    reading = attempted(ReadTask(found.student, found.path), run.grading)
    if isinstance(reading, Failed):
        problem, whose = reading.problem, reading.whose
        submission = unreadable(found.student, found.path, problem)
    else:
        submission, problem, whose = reading.submission, reading.problem, Fault.STUDENT
    stored_as, cases = desk.take(found, submission)
    if not cases:
        return
    task = SlurmTask(len(run.tasks), found.student, submission, stored_as, cases)
    if problem:
        run.finish_without_running(task, whose, problem)
    else:
        run.add(task)


def take_in(base: Path, store: Store) -> list[str]:
    """Cancel the jobs of earlier runs that were killed, and store the records that these jobs have written."""
    said = []
    for jobs in sorted(base.glob("*/jobs")):
        files = RunFiles(jobs.parent)
        cancel(files.noted_jobs())
        added = 0
        for result in sorted(files.folder.glob("result-*.json")):
            with suppress(ValidationError, OSError, GraderFault):
                record = Record.model_validate_json(result.read_bytes())
                added += _store(store, record)
        jobs.unlink(missing_ok=True)
        said.append(f"Results collected from the interrupted run {files.folder.name}: {added}.")
    return said


def _store(store: Store, record: Record) -> bool:
    number = store.find(record.assignment, record.submission.id, record.submission.sha256)
    return number is not None and store.add_record(number, conditions_of(record), record)
