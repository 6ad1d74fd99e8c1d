"""A student sees a predicted time until the measured one stands next to it. It is no grade, and delays none."""

import json
import math
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from grader.grading.setup import Setup
from grader.judge import foreman
from grader.judge.ledger import Stage, Step
from grader.judge.office import Judge
from grader.judge.server import application
from grader.judge.tokens import STAFF, make_token
from grader.store import open_store
from tests.judge.conftest import PART, Served, eventually
from tests.support.judge_stand_in import stand_in_lanes

STUDENTS = ("alice", "bob", "carol", "dave", "erin", "frank", "mallory")
"""Each is of one test: the judge is the same for all."""


@pytest.fixture(scope="module")
def predicting(setup: Setup, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = tmp_path_factory.mktemp("judge") / "class.sqlite"
    with open_store(store, create=True) as opened:
        for student in STUDENTS:
            opened.add_student(student, enrolled=True)
        tokens = {who or "staff": make_token(opened, who) for who in (STAFF, *STUDENTS)}
    judge = Judge(store, setup.assignment, stand_in_lanes(setup, tuple(Stage), predicts=True))
    with pytest.MonkeyPatch.context() as patch, TestClient(application(judge), follow_redirects=False) as client:
        patch.setattr(foreman, "_TICK_S", 0.2)
        yield Served(client, store, tokens, judge)


def page(served: Served, who: str, upload: str) -> str:
    return served.ask(who, "GET", f"/submissions/{upload}", headers=PART).text


def predicted(served: Served, who: str, upload: str) -> None:
    eventually(lambda: "Predicted, not measured" in page(served, who, upload))


def far_from_predicted(served: Served) -> list[str]:
    """Whose times are said to be, to the staff."""
    attention = served.ask("staff", "GET", "/api/v1/staff/queue").json()["attention"]
    return [who for why, people in attention.items() if "predicted" in why for who in people]


def test_the_prediction_comes_first_and_the_measured_time_next_to_it(predicting: Served) -> None:
    timing = predicting.judge.foreman.lanes[-1]
    timing.rests_until = math.inf  # the GPU is busy for now
    upload = predicting.hand_in("alice", "int main() {} // predicted: 90")["id"]
    eventually(lambda: "Predicted, not measured: about 90 ms." in page(predicting, "alice", upload))
    status = predicting.ask("alice", "GET", f"/api/v1/submissions/{upload}").json()
    assert (status["stage"], "measured on" in page(predicting, "alice", upload)) == ("timing", False)
    assert "90 ms" not in json.dumps(status) and status["scores"]["total"] is None
    assert "alice" not in predicting.client.get("/board", headers=PART).text
    assert predicting.ask("bob", "GET", f"/submissions/{upload}", headers=PART).status_code == 404

    timing.rests_until = -math.inf
    predicting.judge.foreman.ring()
    predicting.settled("alice", upload)
    assert "about 90 ms. s01 takes 100 ms, measured on NVIDIA H200." in page(predicting, "alice", upload)
    assert "alice" not in far_from_predicted(predicting)


def test_a_time_far_from_the_predicted_one_is_a_hint_for_the_staff_and_costs_nothing(predicting: Served) -> None:
    for who, ms in (("carol", 100), ("mallory", 4000)):
        upload = predicting.hand_in(who, f"int main() {{}} // predicted: {ms}")["id"]
        assert predicting.settled(who, upload)["scores"]["total"] == 60.0
        predicted(predicting, who, upload)
    staff = eventually(
        lambda: (text := predicting.ask("staff", "GET", "/staff", headers=PART).text) * ("far from" in text)
    )
    assert "s01 takes 100 ms, measured on NVIDIA H200; predicted were 3,600 ms to 4,400 ms" in staff
    assert far_from_predicted(predicting) == ["mallory"]
    assert "far from" not in predicting.ask("mallory", "GET", "/").text


def test_a_submission_ends_a_prediction_which_is_made_again(predicting: Served) -> None:
    aside = predicting.judge.foreman.lanes[0]
    predicting.hand_in("dave", "int main() {} // predicts for: 600")
    first = eventually(lambda: aside.job)
    upload = predicting.hand_in("erin", "int main() {}")["id"]
    assert predicting.settled("erin", upload)["state"] == Step.DONE
    predicted(predicting, "erin", upload)  # the newest first
    again = eventually(lambda: aside.job)
    assert (again.upload.student, again is first) == ("dave", False)
    assert predicting.judge.foreman.free_after(Stage.VERDICT, [], 10.0) == [0.0], (
        "what is predicted keeps nobody waiting"
    )


def test_what_fails_a_sample_is_not_predicted_and_a_prediction_outlives_a_regrading(predicting: Served) -> None:
    wrong = predicting.hand_in("bob", "int main() {} // fails: s02")["id"]
    right = predicting.hand_in("frank", "int main() {}")["id"]
    predicted(predicting, "frank", right)
    assert "Predicted" not in page(predicting, "bob", wrong) and predicting.settled("bob", wrong)
    predicting.ask("staff", "POST", "/api/v1/staff/actions", json={"action": "rerun", "target": right})
    predicting.settled("frank", right)
    assert "Predicted" in page(predicting, "frank", right)
