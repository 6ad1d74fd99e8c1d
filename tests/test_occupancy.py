"""Theoretical occupancy: the toolkit's numbers, and the sentence that names what limits it."""

import pytest

from grader.base.errors import MachineFault
from grader.gpu.facts import known_limits
from grader.profiling.occupancy import Blocks, Demand, Occupancy, calculator, occupancy
from grader.programs.toolkit import find_toolkit


def on(capability: tuple[int, int], demand: Demand) -> Occupancy:
    limits = known_limits(capability)
    assert limits is not None
    return occupancy(demand, limits, _blocks(capability))


def _blocks(capability: tuple[int, int]) -> Blocks:
    limits = known_limits(capability)
    assert limits is not None
    try:
        return calculator(find_toolkit(), limits)
    except MachineFault as missing:  # the only reason: no toolkit headers on this machine
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("demand", "blocks", "theoretical"),
    [
        # an H200's cudaOccupancyMaxActiveBlocksPerMultiprocessor and ncu's launch__occupancy_limit_*, 2026-11-21
        (Demand(12, 256, 1024, 0), 8, 1.0),
        (Demand(12, 256, 1024, 40000), 5, 0.625),
        (Demand(12, 1024, 4096, 0), 2, 1.0),
        (Demand(167, 128, 0, 49152), 3, 0.1875),  # flash2.cu for d = 32; ncu: 18.75 %
    ],
)
def test_it_agrees_with_the_driver_and_ncu_on_an_h200(demand: Demand, blocks: int, theoretical: float) -> None:
    found = on((9, 0), demand)
    assert found.blocks == blocks
    assert found.theoretical == pytest.approx(theoretical)


def test_the_sentence_names_registers_and_what_saving_them_brings() -> None:
    found = on((9, 0), Demand(64, 1024))
    assert found.blocks == 1
    assert found.limiters == ("registers",)
    assert found.sentence == (
        "64 registers × 1024 threads: one block per SM; at 48 registers still one, at 32 registers two, "
        "at 512 threads two"
    )


def test_the_sentence_names_shared_memory_and_what_saving_it_brings() -> None:
    found = on((8, 0), Demand(32, 128, 0, 80 * 1024))
    assert found.limiters == ("shared memory",)
    assert found.sentence.startswith("80 KiB of shared memory per block: two blocks per SM;")
    assert found.sentence.endswith("at 53 KiB three")


def test_a_full_sm_is_limited_by_its_warps() -> None:
    found = on((9, 0), Demand(32, 256))
    assert found.theoretical == 1.0
    assert "warps" in found.limiters


def test_tiny_blocks_are_limited_by_their_number() -> None:
    found = on((9, 0), Demand(16, 32))
    assert found.limiters == ("blocks",)
    assert found.theoretical == 0.5
    assert found.sentence == "32 blocks, the most an SM holds, of 32 threads each: 32 blocks per SM"


def test_the_same_launch_fills_a_smaller_sm_differently() -> None:
    assert on((8, 0), Demand(32, 1024)).blocks == 2
    assert on((8, 6), Demand(32, 1024)).blocks == 1
    assert on((7, 5), Demand(32, 1024)).theoretical == 1.0
