"""The API's response models for submissions and lanes. FastAPI generates the OpenAPI description from these models."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from grader.judge.lanes import StageLane
from grader.judge.ledger import Ledger, Stage, Step, Upload
from grader.judge.office import Judge


class _Answer(BaseModel):
    model_config = ConfigDict(use_attribute_docstrings=True)


class Running(_Answer):
    """The progress of a submission while it runs."""

    stage: str
    """The current step, in words."""
    elapsed_s: float
    total: int | None
    """The number of tests that will run."""
    tests: dict[str, str]
    """The results of finished tests, by name."""


class Status(_Answer):
    """A submission: its place in the queue, its progress and its results."""

    id: str
    student: str
    received: str
    """ISO 8601, UTC."""
    stage: Stage
    state: Step
    place: int | None
    """The place in the queue, counted from 1; null if the submission is not waiting, or if its student is banned."""
    predicted_wait_s: float | None
    """The predicted time until the current stage is done; null if the submission is not waiting, or if no lane serves
    the queue, for example while it is paused."""
    note: str
    days_late: int
    running: Running | None
    tests: list[dict[str, Any]]
    """The tests as in the record (docs/record.md), without profiles."""
    scores: dict[str, Any] | None
    """As in the record."""
    practice: bool | None
    """True for a practice run, which has no total; null without a record."""
    url: str
    """The page of the submission."""


class LaneStatus(_Answer):
    """A lane and the submission that it grades."""

    name: str
    stage: Stage
    upload: str
    """The submission being graded, '' if there is none."""
    student: str
    rechecking: str
    """The student whose result is being rechecked, or ''."""
    since: float | None
    """When the submission began to run, in seconds since 1970."""
    busy_s: float
    finished: int
    resting: bool
    """True while the lane pauses because the grader's own program does not run on it."""
    last_fault: str


class Queue(_Answer):
    """The waiting and the running submissions, and any problems."""

    paused: bool
    draining: bool
    banned: list[str]
    problem: str
    """The reason why no submission is started, or ''."""
    notes: list[str]
    """Reasons why results of the class cannot be compared, and why some submissions cannot start."""
    lanes: list[LaneStatus]
    uploads: list[Status]
    failed: list[Status]
    attention: dict[str, list[str]]
    """The students who need attention, by reason."""


def queue_state(judge: Judge, ledger: Ledger) -> dict[str, Any]:
    """The state of the queue, for the API and the staff's page."""
    notes, stranded = judge.notes(), 0 if judge.foreman.has_timing else len(ledger.places(Stage.TIMING))
    if stranded:
        notes.append(f"Submissions that wait for a GPU: {stranded}. This judge has none: restart it with one.")
    return {
        "paused": bool(ledger.switch("paused")),
        "draining": bool(ledger.switch("draining")),
        "banned": ledger.banned(),
        "problem": judge.foreman.problem,
        "notes": notes,
        "lanes": [lane_of(lane) for lane in judge.foreman.lanes],
    }


def status_of(judge: Judge, ledger: Ledger, upload: Upload) -> Status:
    """The status of a submission."""
    result, live = ledger.results.of(upload.submission, upload.record), judge.foreman.live.get(upload.id)
    waits = upload.state is Step.WAITING
    place, wait_s = (judge.line_of(ledger, upload.number).get(upload.number) if waits else None) or (None, None)
    return Status(
        id=upload.id,
        student=upload.student,
        received=datetime.fromtimestamp(upload.received, UTC).isoformat(timespec="seconds"),
        stage=upload.stage,
        state=upload.state,
        place=place,
        predicted_wait_s=None if wait_s is None else round(wait_s, 1),
        note=upload.note,
        days_late=upload.days_late,
        running=Running(stage=live.stage, elapsed_s=round(live.elapsed_s, 1), total=live.total, tests=live.tests)
        if live
        else None,
        tests=list(result.tests) if result else [],
        scores=result.scores if result else None,
        practice=result.practice if result else None,
        url=f"/submissions/{upload.id}",
    )


def lane_of(lane: StageLane) -> LaneStatus:
    """The status of a lane."""
    return LaneStatus(
        name=lane.name,
        stage=lane.stage,
        upload=lane.upload.id if lane.upload else "",
        student=lane.upload.student if lane.upload else "",
        rechecking=lane.rechecking.attempt.student.id if lane.rechecking else "",
        since=lane.upload.began if lane.upload else None,
        busy_s=lane.busy_s,
        finished=lane.finished,
        resting=lane.rests_until > time.monotonic(),
        last_fault=lane.last_fault,
    )
