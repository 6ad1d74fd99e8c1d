"""Counters are what one gets by hand."""

from pathlib import Path
from typing import Any

import pytest

from emulator.tests.programs import HERE, Execution, build, execute

SOURCE = HERE / "counters.cu"


def counted(name: str, folder: Path, **environment: Any) -> Execution:
    done = execute(build(SOURCE, count=True), name, folder=folder, **environment)
    assert done.exit_code == 0, done.output + done.errors
    return done


def counters(done: Execution) -> dict[str, int]:
    (kernel,) = done.kernels()
    result: dict[str, int] = kernel["counters"]
    return result


SHARED = {
    # requests, wavefronts, bank conflicts of the load: 32 banks of 4 bytes, one word of each in a wavefront
    "shared_stride1": (1, 1, 0),
    "shared_stride2": (1, 2, 1),
    "shared_stride32": (1, 32, 31),
    "shared_stride33": (1, 1, 0),
    "shared_broadcast": (1, 1, 0),
    # of 16 bytes a lane, quarters of a warp are served: at best four wavefronts, two where neighbours share
    "shared_float4": (1, 4, 0),
    "shared_float4_broadcast": (1, 2, 0),
    "shared_float4_pairs": (1, 2, 0),
    "shared_float4_rows": (1, 32, 28),
    "shared_float4_padded": (1, 4, 0),
    # of 8 bytes, halves
    "shared_float2": (1, 2, 0),
    # four loads of 4 bytes that ptxas makes one of 16
    "four_words_of_a_row": (1, 32, 28),
    # which it cannot where a store between them may change what they read; the last load has no conflict
    "four_words_with_stores_between": (5, 4 * 32 + 1, 4 * 31),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_load_takes_a_wavefront_for_each_word_that_wants_the_same_bank(name: str, tmp_path: Path) -> None:
    found = counters(counted(name, tmp_path))
    names = ("shared_load_requests", "shared_load_wavefronts", "shared_load_bank_conflicts")
    assert tuple(found[n] for n in names) == SHARED[name]


def test_loads_and_stores_have_conflicts_of_their_own(tmp_path: Path) -> None:
    found = counters(counted("shared_store_stride2", tmp_path))
    assert (found["shared_store_requests"], found["shared_store_wavefronts"]) == (1, 2)
    assert found["shared_store_bank_conflicts"] == 1
    assert (found["shared_load_wavefronts"], found["shared_load_bank_conflicts"]) == (1, 0)


@pytest.mark.parametrize(
    ("name", "operation", "requests", "sectors", "size"),
    [
        ("global_float4", "load", 2, 32, 1024),  # 512 bytes of each of two warps
        ("global_float4", "store", 2, 32, 1024),
        ("global_stride2", "load", 1, 8, 128),
        ("global_stride8", "load", 1, 32, 128),
        ("global_broadcast", "load", 1, 1, 128),
        ("global_stride2", "store", 1, 4, 128),
        ("global_misaligned", "store", 1, 5, 128),
    ],
)
def test_a_global_request_touches_each_sector_once(
    name: str, operation: str, requests: int, sectors: int, size: int, tmp_path: Path
) -> None:
    found = counters(counted(name, tmp_path))
    names = (f"global_{operation}_{what}" for what in ("requests", "sectors", "bytes"))
    assert tuple(found[n] for n in names) == (requests, sectors, size)


def test_both_sides_of_a_divergent_branch_are_issued_to_half_the_lanes(tmp_path: Path) -> None:
    found = counters(counted("half_divergent", tmp_path))
    # Two warps: 4 instructions up to the branch and the last one with all lanes, 14 and 5 with half of them.
    assert found["instructions"] == 2 * (4 + 14 + 5 + 1)
    assert found["thread_instructions"] == 2 * (5 * 32 + 19 * 16)
    assert (found["branches"], found["divergent_branches"]) == (2, 2)


def test_a_branch_that_whole_warps_take_is_not_divergent(tmp_path: Path) -> None:
    found = counters(counted("one_warp_of_two_idle", tmp_path))
    assert (found["branches"], found["divergent_branches"]) == (2, 0)
    assert found["thread_instructions"] == 32 * found["instructions"]


def test_lanes_that_the_launch_does_not_fill_do_not_count(tmp_path: Path) -> None:
    found = counters(counted("polynomial", tmp_path))  # two blocks of a full and a half warp
    assert found["thread_instructions"] == 24 * found["instructions"]


def test_barriers_are_counted_for_every_warp(tmp_path: Path) -> None:
    assert counters(counted("barriers", tmp_path))["warp_barrier"] == 3 * 4 * 5


def test_operations_are_counted_for_every_thread_and_by_precision(tmp_path: Path) -> None:
    single = counters(counted("polynomial", tmp_path))
    assert (single["flop_sp_fma"], single["flop_sp_add"], single["flop_sp_mul"]) == (96 * 10, 96, 96)
    double = counters(counted("doubles", tmp_path))
    assert (double["flop_dp_mul"], double["flop_dp_add"], double["flop_dp_fma"]) == (32, 32, 0)


def test_atomics_are_requests_of_their_own(tmp_path: Path) -> None:
    found = counters(counted("global_atomics", tmp_path))
    assert found["global_reduction_requests"] + found["global_atomic_requests"] == 2
    assert found["global_reduction_sectors"] + found["global_atomic_sectors"] == 2
    assert found["global_load_requests"] == found["global_store_requests"] == 0


def test_lanes_that_share_the_address_of_a_shared_atomic_wait_for_one_another(tmp_path: Path) -> None:
    found = counters(counted("shared_histogram", tmp_path))
    names = ("atomic", "reduction")
    assert sum(found[f"shared_{n}_requests"] for n in names) == 1
    assert sum(found[f"shared_{n}_same_address"] for n in names) == 7  # eight lanes on each of four bins


def test_local_memory_is_interleaved_so_that_a_warp_reads_whole_sectors(tmp_path: Path) -> None:
    found = counters(counted("local_array", tmp_path))
    assert found["local_load_bytes"] == 10 * 32 * 4
    assert found["local_load_sectors"] == 10 * 4
    assert found["local_store_bytes"] == 64 * 32 * 4
    assert found["local_store_sectors"] == 64 * 4


def test_the_number_of_worker_threads_changes_no_counter(tmp_path: Path) -> None:
    one = counters(counted("polynomial", tmp_path, GRADER_EMULATOR_THREADS="1"))
    assert one == counters(counted("polynomial", tmp_path, GRADER_EMULATOR_THREADS="3"))


def test_the_usual_build_counts_nothing(tmp_path: Path) -> None:
    done = execute(build(SOURCE), "barriers", folder=tmp_path)
    assert counters(done) == {}


@pytest.mark.parametrize(("blocks", "stages"), [(1, 1), (1, 2), (2, 1)])
def test_products_of_warpgroups_and_bulk_copies_are_counted(blocks: int, stages: int, tmp_path: Path) -> None:
    program = build(HERE / "hopper_counters.cu", flags=("-std=c++17",), count=True, target="sm_90a")
    done = execute(program, str(blocks), str(stages), folder=tmp_path)
    assert done.exit_code == 0, done.output + done.errors
    found = counters(done)
    tiles, tile_bytes, warps = 8, 4096, 4
    assert found["wgmma"] == blocks * tiles * warps
    assert found["wgmma_from_registers"] == 0
    assert found["flop_tensor"] == blocks * tiles * 2 * 64 * 8 * 16
    assert found["bulk_load_bytes"] == tiles * tile_bytes  # from global memory: a multicast reads them once
    assert found["bulk_multicast_bytes"] == (blocks - 1) * tiles * tile_bytes
    assert found["bulk_store_bytes"] == blocks * 256
    assert found["bulk_stages"] == stages
    assert found["barrier_object_waits"] == blocks * tiles * warps
    assert found["cluster_blocks"] == (blocks if blocks > 1 else 0)
