"""The parts of a predicted time, each on an example that can be worked out by hand."""

import pytest

from grader.estimates.counts import Group, SampledRun, Samples, counted
from grader.estimates.flow import block_executions
from grader.estimates.gpus import _TABLE, GPUS
from grader.estimates.machine_code import NO_SCOREBOARD, Block, Code, Instruction, NotPredictable, read_sass
from grader.estimates.model import _traffic
from grader.estimates.scheduler import Step, cycles
from grader.programs.trace import AccessEvent, ExecutedEvent, LaunchesEvent, Trace

SASS = """
.text.kernel:
        //## File ".nv_debug_ptx_txt", line 12
        /*0000*/                   LDG.E R2, [R2] ;    /* 0x0000000402027981 */
                                                       /* 0x000ea2000c1e1900 */
.L_x_0:
        //## File ".nv_debug_ptx_txt", line 14
        /*0010*/                   FFMA R2, R2, R2, R2 ;  /* 0x0000000202027223 */
                                                       /* 0x004fc80000000002 */
        /*0020*/              @!P0 BRA `(.L_x_0) ;     /* 0xfffffffc00f88947 */
                                                       /* 0x000fea000383ffff */
        /*0030*/                   EXIT ;              /* 0x000000000000794d */
                                                       /* 0x000fea0003800000 */
"""


def step(
    unit: str = "a", busy: float = 1.0, latency: float = 4.0, barrier: bool = False, **given: tuple[int, ...] | int
) -> Step:
    scheduled = {"stall": 1, "sets_write": 7, "sets_read": 7, "waits": (), **given}
    return Step(Instruction("NOP", "", "", 1, **scheduled), unit, busy, latency, barrier)  # type: ignore[arg-type]


def test_machine_code_is_read_with_its_lines_stalls_and_scoreboards() -> None:
    blocks = read_sass(SASS)["kernel"]
    entry, loop, end = blocks
    assert [block.successors for block in blocks] == [(1,), (2, 1), ()]
    load, (multiply, _) = entry.instructions[0], loop.instructions
    assert (load.opcode, load.ptx_line, load.sets_write, load.waits) == ("LDG.E", 12, 2, ())
    assert (multiply.name, multiply.ptx_line, multiply.waits, multiply.stall) == ("FFMA", 14, (2,), 4)
    assert multiply.sets_write == NO_SCOREBOARD
    assert end.instructions[0].name == "EXIT"


def instruction(opcode: str, line: int) -> Instruction:
    return Instruction(opcode, "", "", line, 1, 7, 7, ())


def test_an_unrolled_loop_and_its_remainder_share_the_lines_executions() -> None:
    blocks = (
        Block([instruction("S2R", 1)], (1, 2)),
        Block([instruction("FFMA", 5)] * 4 + [instruction("BRA", 6)], (2, 1)),  # four times unrolled
        Block([instruction("LDG", 3)], (3, 4)),
        Block([instruction("FFMA", 5)], (4, 3)),
        Block([instruction("EXIT", 7)], ()),
    )
    lines = {1: 10.0, 3: 10.0, 5: 10 * 64.0, 7: 10.0}
    executions, misfit = block_executions(Code(blocks, {5: "fma.rn.f32", 3: "ld.global.f32"}, 32), lines, 10)
    assert 4 * executions[1] + executions[3] == pytest.approx(640, rel=0.01)
    assert executions[1] == pytest.approx(160, rel=0.05)  # the unrolled loop does it, as ptxas intends
    assert misfit < 0.01


def test_a_loop_of_nothing_but_predicated_instructions_is_counted_by_them() -> None:
    loop = Block([Instruction("FFMA", "", "@P0", 5, 1, 7, 7, ())], (1, 2))
    code = Code([Block([], (1,)), loop, Block()], {5: "fma.rn.f32"}, 32)
    assert block_executions(code, {5: 640.0}, 10)[0][1] == pytest.approx(640, rel=0.01)


def test_a_full_pipe_a_wait_for_a_result_and_a_stall_take_their_cycles() -> None:
    busy = [step(busy=8.0)] * 10
    assert cycles(busy, warps=4, group=1, repeats=1) == pytest.approx(4 * 10 * 8, rel=0.1)
    load = [step(latency=200.0, sets_write=0), step(waits=(0,))]
    assert cycles(load, warps=1, group=1, repeats=10) == pytest.approx(10 * 202, rel=0.05)
    assert cycles(load, warps=8, group=1, repeats=10) == pytest.approx(10 * 202, rel=0.1)  # all wait at once
    assert cycles([step(stall=6)] * 20, warps=1, group=1, repeats=1) == pytest.approx(120, rel=0.1)


def test_warps_meet_at_a_barrier() -> None:
    # Each turn the last of four warps issues when the pipe is free for it, after 90 cycles; then all wait for 60 more.
    turn = [step(busy=30.0), step("b", barrier=True, latency=60.0)]
    assert cycles(turn, warps=4, group=4, repeats=80) == pytest.approx(80 * 152, rel=0.02)
    free = cycles([step(busy=30.0), step("b")], warps=4, group=4, repeats=80)
    assert free == pytest.approx(80 * 120, rel=0.02)  # the pipe alone


# ---- growth ---------------------------------------------------------------------------------------------------------


def ran(count: int, blocks: int, warps: int, entry: str = "k") -> Trace:
    launches = LaunchesEvent(0, "kernel(int)", entry, count, 1, (blocks, 1, 1), (64, 1, 1), 0, 0, 0)
    return Trace(launches=(launches,), executed=(ExecutedEvent(0, entry, 5, 6, warps, 32 * warps),))


def for_a_hundred(large: Trace, small: Trace) -> list[Group]:
    return counted(Samples([SampledRun(4, 1, 2, large)], [SampledRun(2, 1, 3, small)], 100, 1))


def test_more_units_mean_more_blocks_or_more_launches_or_longer_ones() -> None:
    (blocks,) = for_a_hundred(ran(1, 400, 8000), ran(1, 200, 4000))
    assert (blocks.launches, blocks.blocks, blocks.lines[5]) == (1, 10_000, 200_000)
    (launches,) = for_a_hundred(ran(4, 100, 8000), ran(2, 100, 4000))
    assert (launches.launches, launches.blocks, launches.lines[6]) == (100, 10_000, 200_000)
    (longer,) = for_a_hundred(ran(1, 132, 8000), ran(1, 132, 4000))
    assert (longer.blocks, longer.lines[5]) == (132, 200_000)


def test_blocks_that_take_work_from_a_queue_are_not_counted_for_all() -> None:
    each = 132 / 2, 132 / 3  # what the blocks that ran stand for
    (queue,) = for_a_hundred(ran(1, 132, int(4000 * each[0])), ran(1, 132, int(2000 * each[1])))
    assert queue.lines[5] == pytest.approx(100_000)


def test_launches_without_a_law_are_not_predicted() -> None:
    with pytest.raises(NotPredictable, match="at sizes 2, 4"):
        for_a_hundred(ran(1, 400, 90_000), ran(1, 200, 1000))
    with pytest.raises(NotPredictable, match="other kernels"):
        for_a_hundred(ran(1, 400, 8000), ran(1, 200, 4000, "other"))


def test_counts_of_longer_units_follow_from_three_shorter_ones() -> None:
    def counts(n: int) -> int:
        return 5 * n * n + 70 * n + 900

    def at_4096(*warps: int, degree: int = 3) -> list[Group]:
        lengths = [(n, ran(n // 128, 2 * n // 128, w)) for n, w in zip((128, 256, 512), warps, strict=True)]
        large, small = ([SampledRun(1, n, blocks, trace) for n, trace in lengths] for blocks in (2, 3))
        return counted(Samples(large, small, 1, 4096, degree))

    (group,) = at_4096(counts(128), counts(256), counts(512))
    assert (group.launches, group.blocks) == pytest.approx((32, 2048), rel=1e-3)
    assert group.lines[5] == pytest.approx(counts(4096), rel=0.04)
    (peeled,) = at_4096(*(100 * n * (n - 1) for n in (1, 2, 4)), degree=2)  # all turns of a loop but the first
    assert peeled.lines[5] == pytest.approx(100 * 32 * 31, rel=0.01)
    with pytest.raises(NotPredictable, match="at sizes 128, 256, 512"):
        at_4096(9000, 100, 9000)


def test_lanes_in_rows_of_an_odd_length_use_all_banks_of_l1() -> None:
    def lines(stride: int) -> float:
        access = AccessEvent(0, "k", "a.cu", 3, 7, "global", "load", 4, stride, 100, 3200, 3200, 2800, 32)
        group = Group("k", "k", 128, 0, 0, 0, 1.0, 1000.0, accesses={(7, "global"): access})
        return _traffic(group, GPUS["h100"], 8, ("", "", 0))[0][7].lines

    assert [lines(4 * floats) for floats in (511, 512, 516)] == pytest.approx([32 / 2.7, 32, 32 / 2.7])


def test_each_fact_about_a_gpu_has_a_source() -> None:
    facts = [fact for _, _, _, facts in _TABLE["gpus"] for fact in facts.values()]
    named = {source for _, source in facts}
    assert named <= set(_TABLE["sources"]) and len(facts) == 13 * len(_TABLE["gpus"])
    assert all(source.split(":")[0] in {*_TABLE["sources"], "chosen"} for _, source in _TABLE["all"].values())
