"""Which loops may wait for other lanes of their warp, and where such lanes meet: read from PTX as nvcc writes it."""

import pytest

from cudaemu.analysis.cfg import build
from cudaemu.analysis.waiting import Callees, meetings, waiting_loops
from cudaemu.ptx import Function, parse

LOCK = "atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.s32 %p1, %r1, 0;"
LOCK_BY_EXCHANGE = "atom.global.exch.b32 %r1, [%rd1], 1; setp.ne.s32 %p1, %r1, 0;"
FLAG = "ld.volatile.shared.u32 %r1, [%r9]; setp.eq.s32 %p1, %r1, 0;"
FLAG_WITH_SLEEP = "nanosleep.u32 20; ld.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0;"
BARRIER_OBJECT = "mbarrier.test_wait.shared.b64 %p2, [%r9], %rd2; not.pred %p1, %p2;"
SEARCH = "ld.global.u32 %r1, [%rd1]; add.s64 %rd1, %rd1, 4; setp.lt.s32 %p1, %r1, 7;"
UPDATE = "atom.global.cas.b32 %r2, [%rd1], %r1, 5; setp.ne.s32 %p1, %r1, %r2; mov.b32 %r1, %r2;"
QUEUE = "atom.global.add.u32 %r1, [%rd1], 1; setp.lt.u32 %p1, %r1, 100;"
COUNTED = "ld.volatile.shared.u32 %r1, [%r9]; st.shared.u32 [%r9+4], %r1; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 9;"


def kernel(body: str, behind: str = "") -> Function:
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        ".reg .pred %p<4>;\n.reg .b32 %r<10>;\n.reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nmov.u32 %r9, 0;\nmov.b64 %rd2, 0;\n"
        f"$L__BB0_1:\n{body}\n@%p1 bra $L__BB0_1;\n{behind}\nret;\n}}\n"
    )
    return parse(text.replace("; ", ";\n")).functions["k"]


@pytest.mark.parametrize("body", [LOCK, LOCK_BY_EXCHANGE, FLAG, FLAG_WITH_SLEEP, BARRIER_OBJECT])
def test_a_loop_that_ends_by_what_others_write_may_wait(body: str) -> None:
    graph = build(kernel(body))
    assert waiting_loops(graph, Callees()) == frozenset(graph.loops) != frozenset()


@pytest.mark.parametrize("body", [SEARCH, UPDATE, QUEUE, COUNTED])
def test_a_loop_that_ends_whatever_others_do_costs_nothing(body: str) -> None:
    graph = build(kernel(body))
    assert graph.loops and waiting_loops(graph, Callees()) == frozenset()


def test_a_call_of_a_function_that_looks_at_memory_of_others_may_wait() -> None:
    body = "call.uni (retval0), try_lock, (param0); ld.param.b32 %r1, [retval0+0]; setp.ne.s32 %p1, %r1, 0;"
    graph = build(kernel(body))
    assert waiting_loops(graph, Callees()) == frozenset()
    assert waiting_loops(graph, Callees(polling=frozenset({"try_lock"}))) == frozenset(graph.loops)


def test_lanes_meet_once_in_a_block_for_each_mask() -> None:
    behind = (
        "shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; shfl.sync.bfly.b32 %r2, %r2, 8, 31, -1; "
        "vote.sync.ballot.b32 %r3, %p1, %r4; bar.sync 0;"
    )
    graph = build(kernel(LOCK, behind))
    found = meetings(graph, Callees())
    assert [i.op for b in graph.blocks for i in b.instrs if i.index in found] == ["shfl", "vote"]
    alone = build(kernel(LOCK, "bar.sync 0;"))
    assert [i.op for b in alone.blocks for i in b.instrs if i.index in meetings(alone, Callees())] == ["bar"]
