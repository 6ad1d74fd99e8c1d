"""The order of the judge's queue: fair shares between students, and predictions that hold when nobody else comes."""

import random

from grader.judge.fairness import Place, in_order, next_place, waits


def test_a_student_who_was_served_lately_waits_for_those_who_were_not() -> None:
    heavy, light = Place(1, "heavy", 0, 30.0), Place(2, "light", 0, 10.0)
    assert [place.student for place in in_order([heavy, light])] == ["light", "heavy"]
    assert next_place([heavy, light], frozenset({"light"})) == heavy


def test_priority_goes_before_fairness_and_arrival_decides_between_equals() -> None:
    places = [Place(1, "a", 0, 5.0), Place(2, "b", 0, 5.0), Place(3, "c", 10, 90.0), Place(4, "d", -1, 0.0)]
    assert [place.student for place in in_order(places)] == ["c", "a", "b", "d"]


def test_each_place_waits_for_the_first_free_lane() -> None:
    places = [Place(number, f"s{number}", 0, float(number)) for number in range(4)]
    assert waits(places, [0.0, 4.0], 10.0) == {0: 10.0, 1: 14.0, 2: 20.0, 3: 24.0}
    assert waits(places, [], 10.0) == {}


def test_nobody_waits_longer_than_one_round_of_all_others_however_often_they_come() -> None:
    """One student hands in again and again; forty others as fast as they can. A run takes one second."""
    chosen, clock, last = random.Random(1), 0.0, dict[str, float]()
    waiting, began, longest = dict[str, Place](), dict[str, int](), 0
    for now in range(2000):
        for student in chosen.sample([f"s{number}" for number in range(41)], 20):
            if student not in waiting:
                waiting[student] = Place(now, student, 0, max(clock, last.get(student, 0.0)))
                began[student] = now
        served = next_place(waiting.values(), frozenset())
        assert served is not None
        del waiting[served.student]
        clock, last[served.student] = max(clock, served.tag), served.tag + 1
        longest = max(longest, now - began[served.student])
    assert longest <= 2 * 41
