"""Lists of a student who submitted for days: each request reads the rows that it shows, in the student's turn and from
the student's budget."""

import asyncio
import csv
import io
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from grader.grading.setup import Setup
from grader.judge.budget import Budgets
from grader.judge.ledger import PAGE, Ledger, Stage
from grader.judge.office import Judge
from grader.judge.problems import Problem
from grader.judge.server import application
from grader.judge.tokens import STAFF, Person, make_token
from grader.store import HandIn, Store, open_store
from tests.judge.conftest import Served
from tests.support.judge_stand_in import stand_in_lanes
from tests.support.records import made_record

UPLOADS = 130
LISTS = ("/", "/api/v1/submissions", "/api/v1/worklog.csv")


@pytest.fixture(scope="module")
def many(setup: Setup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A judge; mallory has submitted 130 times, every other submission has a result."""
    path = tmp_path_factory.mktemp("lists") / "class.sqlite"
    with open_store(path, create=True) as store:
        for student in ("alice", "mallory"):
            store.add_student(student, enrolled=True)
        tokens = {who or "staff": make_token(store, who) for who in (STAFF, "alice", "mallory")}
        with store.transaction():
            for number in range(UPLOADS):
                attempt = _attempt(store, number) if number % 2 else None
                store.execute(
                    "INSERT INTO judge_uploads (id, repeat_key, assignment, student, received, stage, state, "
                    "submission) VALUES (?, ?, 'hw4', 'mallory', ?, 'verdict', ?, ?)",
                    (f"upload{number}", f"hw4:{number}", 1e9 + number, "done" if attempt else "withdrawn", attempt),
                )
    judge = Judge(path, setup.assignment, stand_in_lanes(setup, (Stage.VERDICT,)))
    with TestClient(application(judge), follow_redirects=False) as client:
        yield Served(client, path, tokens, judge)


def _attempt(store: Store, number: int) -> int:
    sha256 = f"{number:064}"
    attempt = store.import_submission(HandIn("hw4", "mallory", sha256, "hw4.cu", files=(("hw4.cu", b"int main() {}"),)))
    store.add_record(attempt, "conditions", made_record("mallory", notes=(str(number),)))
    return attempt


class Work:
    """Counts what the ledger reads."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.uploads = self.queries = 0
        upload, execute = Ledger._upload, Store.execute

        def counted_upload(ledger: Ledger, row: Any) -> Any:
            self.uploads += 1
            return upload(ledger, row)

        def counted_query(store: Store, *query: Any) -> Any:
            self.queries += 1
            return execute(store, *query)

        patch.setattr(Ledger, "_upload", counted_upload)
        patch.setattr(Store, "execute", counted_query)


@pytest.mark.parametrize(
    ("place", "uploads"), [("/", 51), ("/api/v1/submissions?limit=5", 6), ("/submissions/upload129", 2)]
)
def test_a_request_reads_what_it_shows(many: Served, monkeypatch: pytest.MonkeyPatch, place: str, uploads: int) -> None:
    assert many.ask("mallory", "GET", place).status_code == 200  # results are in memory now
    work = Work(monkeypatch)
    assert many.ask("mallory", "GET", place).status_code == 200
    assert work.uploads == uploads
    assert work.queries < 20, "no query for each row"


def test_pages_follow_one_another_and_miss_none(many: Served) -> None:
    expected = [f"upload{number}" for number in reversed(range(UPLOADS))]
    found, before = list[str](), ""
    while page := many.ask("mallory", "GET", f"/api/v1/submissions?before={before}").json():
        found += [one["id"] for one in page]
        before = found[-1]
        assert len(page) <= PAGE and all(bool(one["tests"]) == (one["state"] == "done") for one in page)
    assert found == expected
    found, place = [], "/"
    while place:
        text = many.ask("mallory", "GET", place).text
        found += re.findall(r'<th scope="row"><a href="/submissions/(\w+)"', text)
        assert (place == "/") == ('data-part="/"' in text)
        place = "/" + older[1] if (older := re.search(r'href="(\?before=\w+)"', text)) else ""
    assert found == expected
    assert many.ask("mallory", "GET", "/api/v1/submissions?limit=51").status_code == 422
    assert many.ask("alice", "GET", "/api/v1/submissions?before=upload3").status_code == 404


def test_the_work_log_has_every_line_and_is_read_in_pages(many: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    most, of_student = 0, Ledger.of_student

    def counted(ledger: Ledger, *arguments: Any) -> Any:
        nonlocal most
        most = max(most, len(found := of_student(ledger, *arguments)))
        return found

    monkeypatch.setattr(Ledger, "of_student", counted)
    lines = list(csv.DictReader(io.StringIO(many.ask("mallory", "GET", "/api/v1/worklog.csv").text)))
    assert [line["submission"] for line in lines] == [f"upload{number}" for number in range(UPLOADS)]
    assert sum(bool(line["passed"]) for line in lines) == UPLOADS // 2
    assert most == PAGE + 1


def test_the_staff_sees_a_students_pages(many: Served) -> None:
    first = many.ask("staff", "GET", "/api/v1/staff/students/mallory").json()
    assert len(first["submissions"]) == PAGE and first["explained"]
    last = first["submissions"][-1]["id"]
    assert len(many.ask("staff", "GET", f"/api/v1/staff/students/mallory?before={last}").json()["submissions"]) == PAGE
    assert f"?before={last}" in many.ask("staff", "GET", "/staff/students/mallory").text


@pytest.mark.parametrize("place", LISTS)
def test_a_list_costs_the_budget_of_who_asks(many: Served, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    spent = list[str]()
    spend = many.judge.budgets.spend

    def counted(person: str, seconds: float) -> None:
        spent.append(person)
        assert seconds >= 0
        spend(person, seconds)

    monkeypatch.setattr(many.judge.budgets, "spend", counted)
    assert many.ask("mallory", "GET", place).status_code == 200
    assert spent and set(spent) == {"mallory"}
    monkeypatch.setattr(many.judge.budgets, "_left", {})
    spend("mallory", 100.0)
    refused = many.ask("mallory", "GET", place)
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 600
    assert many.ask("alice", "GET", place).status_code == many.ask("staff", "GET", "/staff").status_code == 200


def _named(ledger: Ledger, who: str) -> str:
    return who


def test_one_request_of_a_person_is_in_the_stores_thread() -> None:
    now, most = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)

    async def ask(function: Any) -> Any:
        who = function(None)
        now[who] += 1
        most[who] = max(most[who], now[who])
        await asyncio.sleep(0)
        now[who] -= 1

    async def all_at_once() -> None:
        budgets = Budgets(SimpleNamespace(ask=ask))  # type: ignore[arg-type]
        people = [Person(who, who) for who in "ab" * 20]
        await asyncio.gather(*(budgets.read(one, _named, one.student) for one in people))
        budgets.spend("a", 1e6)
        with pytest.raises(Problem, match="try again in"):
            await budgets.read(people[0], lambda ledger: "a")
        assert not budgets._turns, "nothing is kept of those who have left"

    asyncio.run(all_at_once())
    assert most == {"a": 1, "b": 1}
