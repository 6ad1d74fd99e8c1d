"""The staff's actions on the queue: one function for the page and the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from grader.base.errors import UsageError
from grader.base.names import student_id
from grader.judge.ledger import Ledger, Upload
from grader.judge.problems import Problem


class Action(BaseModel):
    """One action. `target` is a submission for rerun, priority and withdraw, and a student for ban and unban."""

    action: Literal["pause", "resume", "drain", "accept", "regrade", "rerun", "priority", "withdraw", "ban", "unban"]
    target: str = Field(default="", max_length=200)
    value: int = Field(default=1, ge=-100, le=100)


def act(ledger: Ledger, asked: Action, outdated: Sequence[int] = ()) -> str:
    """Do the requested action, and return a sentence that says what was done. `outdated` are the attempts that
    `regrade` grades again. Raises Problem."""
    match asked.action:
        case "pause" | "resume":
            ledger.set_switch("paused", asked.action == "pause")
            return "Nothing new is started." if asked.action == "pause" else "The queue moves again."
        case "drain" | "accept":
            ledger.set_switch("draining", asked.action == "drain")
            return "Submissions are refused." if asked.action == "drain" else "Submissions are taken again."
        case "regrade":
            again = [upload for upload in map(ledger.latest_of, outdated) if upload is not None and upload.settled]
            with ledger.store.transaction():
                for upload in again:
                    ledger.rerun(upload)
                    ledger.prioritise(upload, -1)
            return f"Results that will be graded again, after everything that is waiting: {len(again)}."
        case "ban" | "unban":
            student = student_id(asked.target)
            if student not in ledger.store.students():
                raise Problem(404, f"There is no student {student!r} here: check the id.")
            ledger.set_switch(f"banned:{student}", asked.action == "ban")
            return f"{student} is {'banned' if asked.action == 'ban' else 'no longer banned'}."
    upload = _upload(ledger, asked.target)
    try:
        match asked.action:
            case "rerun":
                ledger.rerun(upload)
                return f"{upload.id} of {upload.student} will be graded again."
            case "priority":
                ledger.prioritise(upload, asked.value)
                return f"{upload.id} of {upload.student} has priority {asked.value}."
            case _:
                ledger.withdraw(upload)
                return f"{upload.id} of {upload.student} is withdrawn."
    except UsageError as error:
        raise Problem(409, str(error)) from error


def _upload(ledger: Ledger, id: str) -> Upload:
    found = ledger.upload(id)
    if found is None:
        raise Problem(404, f"There is no submission {id!r}: check the id.")
    return found
