"""Branches on the number of the change to try cost no instructions."""

import pytest

from cudaemu.analysis.cfg import Gate, build
from cudaemu.analysis.switches import decided
from cudaemu.ptx import Function, parse

KERNEL = """\
.version 8.0 .target sm_80 .address_size 64
.visible .entry k(.param .u64 k_param_0)
{{
    .reg .pred %p<3>; .reg .b32 %r<9>;
    mov.u32 %r1, %envreg0; add.s32 %r2, %r1, -164;
    {test} {branch} bra $THERE;
    add.s32 %r5, %r6, 1;
$THERE:
    {more} ret;
}}
"""


def made(test: str, branch: str = "@%p1", more: str = "") -> Function:
    function = parse(KERNEL.format(test=test, branch=branch, more=more)).functions["k"]
    decided(function)
    return function


@pytest.mark.parametrize(
    ("test", "branch", "taken"),
    [
        ("setp.lt.u32 %p1, %r2, 11;", "@%p1", lambda n: 164 <= n < 175),
        ("setp.lt.u32 %p1, %r2, -3;", "@%p1", lambda n: not 161 <= n < 164),
        ("setp.gt.u32 %p1, %r2, 10;", "@%p1", lambda n: not 164 <= n < 175),
        ("setp.eq.s32 %p1, %r1, 7;", "@%p1", lambda n: n == 7),
        ("setp.le.u32 %p1, %r2, 0;", "@!%p1", lambda n: n != 164),
    ],
)
def test_a_branch_that_the_number_decides(test: str, branch: str, taken: object) -> None:
    blocks = build(made(test, branch)).blocks
    end = blocks[0].end
    assert isinstance(end, Gate)
    assert not blocks[0].instrs  # nothing computes the condition
    assert callable(taken)
    for number in (0, 6, 7, 8, 160, 161, 163, 164, 165, 174, 175, 500):
        assert ((number + end.offset) % (1 << 32) < end.count) == taken(number), number


def test_what_another_instruction_reads_is_still_computed() -> None:
    blocks = build(made("setp.lt.u32 %p1, %r2, 11;", more="selp.b32 %r7, %r2, %r6, %p1;")).blocks
    assert isinstance(blocks[0].end, Gate)
    assert [instr.op for instr in blocks[0].instrs] == ["mov", "add", "setp"]


@pytest.mark.parametrize(
    "test", ["setp.lt.s32 %p1, %r2, 11;", "setp.lt.u32 %p1, %r3, 11;", "setp.gt.u32 %p1, %r2, -1;"]
)
def test_other_branches_stay(test: str) -> None:
    assert not isinstance(build(made(test)).blocks[0].end, Gate)
