"""The translator's tables: types as C holds them, and places that the runtime reports."""

import pytest

from cudaemu.ptx.model import Loc
from cudaemu.translate.tables import Sites
from cudaemu.translate.types import BITS, FORMS, is_float, is_signed, storage


@pytest.mark.parametrize("t", FORMS)
def test_a_type_is_held_in_c_as_wide_and_signed_as_it_is(t: str) -> None:
    form = FORMS[t]
    assert form.wide == (BITS[t] == 64)
    assert (form.scalar in ("i32", "i64")) == (is_signed(t) and not t.endswith("x2")), "a pair of halves is its bits"
    assert (form.scalar in ("float", "double")) == (t in ("f32", "f64"))


@pytest.mark.parametrize(
    ("declared", "kept"),
    [("b8", "u32"), ("s16", "u32"), ("f16x2", "u32"), ("b64", "u64"), ("f64", "f64"), ("f32", "f32"), ("pred", "pred")],
)
def test_a_register_is_kept_in_the_least_type_that_holds_it(declared: str, kept: str) -> None:
    assert storage(declared) == kept


def test_halves_are_floats_and_bits_are_not() -> None:
    assert is_float("bf16x2") and is_float("f16") and not is_float("b16") and not is_float("tf32")


def test_a_place_is_one_row_unless_each_access_remembers_its_own_allocation() -> None:
    sites, here, there = Sites(), Loc(1, 5), Loc(1, 6)
    assert sites.add(here, "BARRIER", 0, 0) == sites.add(here, "BARRIER", 0, 3) == 0
    assert [sites.add(here, "LOAD", 4, 0), sites.add(here, "LOAD", 4, 0), sites.add(there, "BARRIER", 0, 0)] == [
        1,
        2,
        3,
    ]
