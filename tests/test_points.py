"""How points add up: to the cent, as a person would with pen and paper, and only when all is known."""

import random
from fractions import Fraction

import pytest

from grader.base.verdict import Verdict
from grader.records.points import enter, sum_of, total_of
from grader.records.record import PartRecord
from tests.support.records import made_record, made_test


def test_sums_are_exact_and_half_a_cent_is_rounded_up() -> None:
    assert sum_of([92.35], 0.1) == 83.12  # 83.115; in binary it is a little less
    assert sum_of([60, 11.9, 7.7, None]) == 79.6
    dice = random.Random(3)
    for _ in range(5000):
        cents = [dice.randrange(0, 6001) for _ in range(dice.randint(1, 6))]
        percent = dice.choice([0, 5, 10, 15, 25, 30, 100])
        exact = sum(Fraction(each, 100) for each in cents) * Fraction(100 - percent, 100)
        rounded = Fraction(int(exact * 100 + Fraction(1, 2)), 100)
        assert sum_of([each / 100 for each in cents], percent / 100) == float(rounded)
        assert sum_of(each / 100 for each in reversed(cents)) == sum_of(each / 100 for each in cents)


def test_there_is_no_total_while_a_test_is_unjudged_through_the_machine() -> None:
    parts = (
        PartRecord(part="correctness", points=60, max=60, how=""),
        PartRecord(part="report", points=None, max=10, how="entered by an assistant"),
    )
    assert total_of(parts, [made_test("t01")], practice=False) == 60
    assert total_of(parts, [made_test("t01")], practice=True) is None
    unjudged = [made_test("t01"), made_test("t02", Verdict.GRADER_ERROR)]
    assert total_of(parts, unjudged, practice=False) is None
    record = made_record(tests=unjudged, parts=parts)
    assert enter(record, {"report": 8}).scores.total is None, "entering points makes no total either"


@pytest.mark.parametrize("unmeasured", ["not measured: no GPU", "entered by an assistant"])
def test_only_a_part_that_a_person_enters_may_be_missing_from_a_total(unmeasured: str) -> None:
    part = PartRecord(part="x", points=None, max=10, how=unmeasured)
    found = total_of([part], [made_test("t01")], practice=False)
    assert found == (0 if unmeasured.startswith("entered") else None)


def test_whatever_finite_numbers_a_record_has_their_sum_is_a_number() -> None:
    assert sum_of([1e308, -1e308, 2.0]) == 2.0
    assert sum_of([1e300], 0.5) == 5e299
