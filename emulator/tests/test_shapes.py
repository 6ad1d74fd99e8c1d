"""How values of the 32 lanes relate, as the translator finds it: in straight lines, over branches and loops."""

import pytest

from cudaemu.analysis.cfg import build
from cudaemu.analysis.shapes import DYNAMIC, UNIFORM, VECTOR, Shape, affine, analyse, join
from cudaemu.analysis.ssa import Ssa
from cudaemu.ptx import parse
from cudaemu.translate.shape_rules import ShapeRules

REGISTERS = ".reg .pred p,q; .reg .b32 a,b,c,t; .reg .f32 f; .reg .b64 d,e; ld.param.u32 a,[n]; mov.u32 t,%tid.x;"


def shapes(body: str, *, linear: bool = True, apart: bool = False) -> dict[str, Shape]:
    """Shapes of the registers of a kernel at its end; `a` is a parameter and `t` the thread's number."""
    text = f".version 9.0 .target sm_80 .address_size 64 .visible .entry k(.param .u32 n){{ {REGISTERS} {body} ret; }}"
    graph = build(parse(text).functions["k"])
    rules = ShapeRules(linear=linear, per_lane_params=frozenset(), wrap_checks=True, floats=frozenset("f"), apart=apart)
    ssa = Ssa(graph)
    values = analyse(ssa, rules, apart=apart)
    return dict(zip(values.register, values.shape, strict=True))


def test_shapes_join_to_the_less_regular_one() -> None:
    assert join(UNIFORM, None) == UNIFORM
    assert join(affine(4), affine(4)) == affine(4)
    assert join(affine(4), affine(8)) == join(UNIFORM, affine(4)) == DYNAMIC
    assert join(DYNAMIC, VECTOR) == VECTOR
    assert affine(0) == UNIFORM and DYNAMIC.is_dynamic and not affine(4).is_dynamic


@pytest.mark.parametrize(
    ("body", "register", "shape"),
    [
        ("add.s32 b,a,3;", "b", UNIFORM),
        ("mov.u32 b,%ctaid.x;", "b", UNIFORM),
        ("mov.u32 b,%laneid;", "b", affine(1)),
        ("add.s32 b,t,a;", "b", affine(1)),
        ("shl.b32 b,t,2;", "b", affine(4)),
        ("mul.lo.s32 b,t,-3;", "b", affine(-3)),
        ("mul.lo.s32 b,t,a;", "b", DYNAMIC),
        ("sub.s32 b,t,t;", "b", UNIFORM),
        ("mul.lo.s32 b,t,t;", "b", VECTOR),
        ("cvt.rn.f32.s32 f,t;", "f", VECTOR),
        ("mul.wide.u32 d,t,4; add.s64 e,d,16;", "e", affine(4)),
        ("shfl.sync.idx.b32 b,a,0,31,-1;", "b", VECTOR),
        ("mul.wide.u32 d,a,4; ld.global.u32 b,[d];", "b", UNIFORM),
        ("mul.wide.u32 d,t,4; ld.global.u32 b,[d];", "b", VECTOR),
        ("setp.lt.s32 p,a,9;", "p", UNIFORM),
        ("setp.lt.s32 p,t,9;", "p", VECTOR),
    ],
)
def test_the_shape_of_a_result(body: str, register: str, shape: Shape) -> None:
    assert shapes(body)[register] == shape


def test_a_threads_number_is_anything_where_rows_of_a_block_do_not_fill_warps() -> None:
    assert shapes("add.s32 b,t,a;", linear=False)["b"] == VECTOR


@pytest.mark.parametrize(("condition", "shape"), [("a", UNIFORM), ("t", VECTOR)])
def test_where_lanes_that_parted_meet_again_they_hold_different_values(condition: str, shape: Shape) -> None:
    branch = f"setp.lt.s32 p,{condition},9; mov.u32 b,1; @p bra over; mov.u32 b,2; over: add.s32 c,b,b;"
    assert shapes(branch)["c"] == shape


@pytest.mark.parametrize(("bound", "shape"), [("a", UNIFORM), ("t", VECTOR)])
def test_what_a_loop_leaves_is_the_same_where_all_lanes_leave_together(bound: str, shape: Shape) -> None:
    loop = f"mov.u32 b,0; again: add.s32 b,b,1; setp.lt.s32 p,b,{bound}; @p bra again; add.s32 c,b,0;"
    assert shapes(loop)["c"] == shape


def test_a_value_joined_from_two_is_anything_where_lanes_run_apart() -> None:
    branch = "setp.lt.s32 p,a,9; mov.u32 b,1; @p bra over; mov.u32 b,2; over: add.s32 c,b,b;"
    assert shapes(branch, apart=True)["c"] == VECTOR
    assert shapes("add.s32 c,a,3;", apart=True)["c"] == UNIFORM


@pytest.mark.parametrize(("guard", "shape"), [("a", UNIFORM), ("t", VECTOR)])
def test_a_guarded_write_keeps_the_old_value_in_some_lanes(guard: str, shape: Shape) -> None:
    assert shapes(f"setp.lt.s32 p,{guard},9; mov.u32 b,1; @p mov.u32 b,2;")["b"] == shape
