"""One judge for the tests of its server, with stand-ins for what grades (tests/support/judge_stand_in.py)."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from grader.grading.setup import Setup
from grader.judge import foreman, server
from grader.judge.ledger import Stage
from grader.judge.negotiation import AnswerForm
from grader.judge.office import Judge
from grader.judge.server import application
from grader.judge.tokens import STAFF, make_token
from grader.store import open_store
from tests.support.judge_stand_in import stand_in_lanes

PART = {"accept": AnswerForm.PART.value}
STUDENTS = ("alice", "bob", "carol", "mallory")
PATIENCE_S = 60.0


def eventually(look: Callable[[], Any]) -> Any:
    """What `look` finds, as soon as it finds something."""
    until = time.monotonic() + PATIENCE_S
    while not (found := look()):
        assert time.monotonic() < until, f"still {found!r}"
        time.sleep(0.05)
    return found


@dataclass
class Served:
    """A judge that answers, and its people's tokens."""

    client: TestClient
    store: Path
    tokens: dict[str, str]
    judge: Judge
    extra: dict[str, Any] = field(default_factory=dict)

    def ask(self, who: str, method: str, place: str, **options: Any) -> httpx.Response:
        """A request with somebody's token."""
        headers = {"authorization": f"Bearer {self.tokens[who]}"} | options.pop("headers", {})
        answer: httpx.Response = self.client.request(method, place, headers=headers, **options)
        return answer

    def hand_in(self, who: str, source: str, name: str = "hw4.cu") -> dict[str, Any]:
        """Hand in a source, and return the judge's answer."""
        answer = self.ask(who, "POST", "/api/v1/submissions", files={"file": (name, source)})
        assert answer.status_code == 201, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def settled(self, who: str, id: str) -> dict[str, Any]:
        """The state of a submission once nothing more happens to it."""

        def look() -> dict[str, Any] | None:
            status: dict[str, Any] = self.ask(who, "GET", f"/api/v1/submissions/{id}").json()
            return None if status["state"] in ("waiting", "running") else status

        settled: dict[str, Any] = eventually(look)
        return settled


@pytest.fixture(scope="package")
def served(setup: Setup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = tmp_path_factory.mktemp("judge") / "class.sqlite"
    with open_store(store, create=True) as opened:
        for student in STUDENTS:
            opened.add_student(student, nickname=f"{student} the <b>bold</b>", enrolled=True)
        tokens = {who or "staff": make_token(opened, who) for who in (STAFF, *STUDENTS)}
    rules = setup.assignment.model_copy(
        update={"judge": setup.assignment.judge.model_copy(update={"max_upload_bytes": 64 << 10, "runs": 25})}
    )
    patch = pytest.MonkeyPatch()
    patch.setattr(foreman, "IDLE_S", float("inf"))  # rechecks begin when a test says so
    judge = Judge(store, rules, stand_in_lanes(setup, tuple(Stage)))
    with TestClient(application(judge), follow_redirects=False) as client:
        yield Served(client, store, tokens, judge)
    patch.undo()


@contextlib.contextmanager
def listening(served: Served) -> Iterator[tuple[str, int]]:
    """The same judge, in the same event loop, behind uvicorn on this machine's loopback."""
    config = server.config_of(served.client.app)  # type: ignore[arg-type]
    config.lifespan = "off"
    web, opened = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    assert served.client.portal is not None
    serving = served.client.portal.start_task_soon(web.serve, [opened])
    yield opened.getsockname()
    web.should_exit = True
    serving.result(PATIENCE_S)


@pytest.fixture(scope="module")
def address(served: Served) -> Iterator[tuple[str, int]]:
    """Where the judge listens."""
    with listening(served) as found:
        yield found
