"""Registers of a wgmma that are used at the wrong time: read from PTX as nvcc writes it."""

import pytest

from cudaemu.analysis.hazards import TOUCHED, UNFENCED, mark_misused_registers
from cudaemu.ptx import Instr, parse

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"
WAIT_1 = "wgmma.wait_group.sync.aligned 1;"


def product(first: int, a: str = "%rd1") -> str:
    sums = ", ".join(f"%f{first + i}" for i in range(4))
    transposed = "0, 0" if a.startswith("%rd") else "0"
    return f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{sums}}}, {a}, %rd2, %p1, 1, 1, {transposed};"


def use(register: int) -> str:
    return f"st.global.f32 [%rd3], %f{register};"


FRAGMENT = product(1, "{%r1, %r2, %r3, %r4}")
LOAD = "ld.global.u32 %r2, [%rd3];"
LOOP = "$L__BB0_1:\n{}\n@%p2 bra $L__BB0_1;\n"


def marks(*body: str) -> list[str]:
    text = (
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .f32 %f<20>;\n.reg .b64 %rd<4>;\n" + "\n".join(body) + "\nret;\n}\n"
    )
    function = parse(text.replace("; ", ";\n")).functions["k"]
    mark_misused_registers(function)
    assert [i.index for i in function.body if isinstance(i, Instr)] == [
        at for at, i in enumerate(function.body) if isinstance(i, Instr)
    ]
    actions = [i.mods.action for i in function.body if isinstance(i, Instr) and i.op == "wgmma"]
    return [action for action in actions if action in (TOUCHED, UNFENCED)]


@pytest.mark.parametrize(
    "body",
    [
        (FENCE, product(1), COMMIT, use(2), WAIT),
        (FENCE, product(1), WAIT, use(2)),  # not committed
        (FENCE, product(1), COMMIT, product(5), COMMIT, WAIT_1, use(6)),
        (FENCE, product(1), COMMIT, "mov.f32 %f9, %f2;", use(9), WAIT),  # through a copy
        (FENCE, product(1), COMMIT, "add.f32 %f1, %f8, %f9;", WAIT),
        (LOOP.format(f"{LOAD}\n{FENCE}\n{FRAGMENT}\n{COMMIT}"), WAIT),
    ],
)
def test_registers_of_a_product_in_flight_are_not_touched(body: tuple[str, ...]) -> None:
    assert marks(*body) == [TOUCHED]


@pytest.mark.parametrize(
    "body",
    [
        ("mul.f32 %f1, %f1, %f8;", product(1), COMMIT, WAIT),
        (FENCE, product(1), COMMIT, WAIT, "mul.f32 %f9, %f1, %f8;", "mov.f32 %f1, %f9;", product(1), COMMIT, WAIT),
        (FENCE, LOOP.format(f"{product(1)}\n{COMMIT}\n{WAIT}\nmul.f32 %f1, %f1, %f8;")),
    ],
)
def test_a_fence_comes_between_a_write_of_registers_and_the_product(body: tuple[str, ...]) -> None:
    assert marks(*body) == [UNFENCED]


@pytest.mark.parametrize(
    "body",
    [
        (FENCE, product(1), COMMIT, WAIT, use(1)),
        (FENCE, product(1), COMMIT, product(5), COMMIT, WAIT_1, use(1), WAIT, use(5)),
        (FENCE, product(1), "mov.f32 %f9, %f1;", product(1), COMMIT, WAIT, use(1)),  # the compiler's copies
        # arithmetic that the compiler put behind the fence
        (FENCE, "mul.f32 %f1, %f1, %f8;", product(1), COMMIT, WAIT),
        (LOOP.format(f"{LOAD}\n{FENCE}\n{FRAGMENT}\n{COMMIT}\n{WAIT}"), use(1)),
    ],
)
def test_correct_programs_have_no_marks(body: tuple[str, ...]) -> None:
    assert marks(*body) == []
