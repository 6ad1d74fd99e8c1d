"""compute-sanitizer's findings, from what it wrote on an H200 (2025.3.1, 2026-11-21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.sanitize import CHECKS, Check, Report, parse_checks, parse_report, render

FIXTURES = Path(__file__).parent / "fixtures" / "sanitizer"


def report(check: Check, name: str) -> Report:
    return parse_report(check, (FIXTURES / f"{name}.txt").read_text())


def test_a_stray_read_is_traced_to_kernel_block_thread_and_line() -> None:
    found = report("memory", "out_of_bounds_memcheck")
    assert not found.not_run
    assert found.errors == 2
    first = found.findings[0].first
    assert first.message == (
        "Invalid __global__ read of size 4 bytes, 1 bytes after the nearest allocation (of 32,768 bytes)"
    )
    assert first.kernel == "copy_all(const float *, float *, int)"
    assert (first.file, first.line) == ("out_of_bounds.cu", 9)
    assert (first.block, first.thread) == ((32, 0, 0), (0, 0, 0))
    assert first.advice is not None
    api = found.findings[1].first
    assert api.tool == "api"
    assert "cudaDeviceSynchronize failed with cudaErrorLaunchFailure (error 719)" in api.message


def test_a_race_names_both_accesses_and_counts_all_hazards() -> None:
    found = report("race", "race_racecheck")
    assert found.errors == 2049
    (finding,) = found.findings
    assert finding.times == 20
    assert "WAR hazard (write after read)" in finding.first.message
    assert "thread (96,0,0) reads (race.cu:11) and thread (0,0,0) writes (race.cu:9)" in finding.first.message
    assert finding.first.block == (2, 0, 0)
    assert finding.first.advice is not None
    assert "__syncthreads" in finding.first.advice


def test_reads_of_memory_nobody_wrote_are_one_finding_per_line_of_code() -> None:
    found = report("init", "uninitialised_initcheck")
    assert found.errors == 64
    (finding,) = found.findings
    assert finding.times == 20
    assert (finding.first.file, finding.first.line) == ("uninitialised.cu", 8)
    assert finding.first.thread == (0, 0, 0)


def test_a_fault_inside_an_intrinsic_is_placed_where_it_was_called() -> None:
    text = (
        "========= Barrier error detected. Invalid arguments.\n"
        "=========     at __syncwarp(unsigned int)+0x1b0 in sm_30_intrinsics.hpp:110\n"
        "=========     by thread (16,0,0) in block (0,0,0)\n"
        "=========         Device Frame: half_waits(float *, const float *)+0x1b0 in divergent_barrier.cu:17\n"
        "========= \n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    first = parse_report("sync", text).findings[0].first
    assert (first.kernel, first.file, first.line) == ("half_waits(float *, const float *)", "divergent_barrier.cu", 17)
    assert first.advice == "Every thread that calls a warp function must be in its mask."


def test_a_wrong_mask_is_one_finding_with_its_thread() -> None:
    found = report("sync", "divergent_barrier_synccheck")
    assert found.errors > 0
    (finding,) = found.findings
    assert finding.first.message.startswith("Barrier error detected")
    assert finding.first.thread == (0, 0, 0)
    assert (finding.first.file, finding.first.line) == ("divergent_barrier.cu", 15)
    assert finding.first.kernel == "half_waits(float *, const float *)"


@pytest.mark.parametrize(("check", "name"), [("memory", "flash2_memcheck"), ("race", "flash2_racecheck")])
def test_a_right_program_has_no_findings_and_counts_as_run(check: Check, name: str) -> None:
    found = report(check, name)
    assert found == Report(check, (), 0, "")
    assert render([found]) == f"{check}: nothing found."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("========= Error: Target application terminated before first instrumented API call\n", "terminated before"),
        ("========= Device not supported. Please refer to the documentation\n", "Device not supported"),
        ("", "without a summary"),
    ],
)
def test_a_run_in_which_nothing_was_instrumented_is_no_clean_bill(text: str, why: str) -> None:
    found = parse_report("memory", f"========= COMPUTE-SANITIZER\n{text}")
    assert why in found.not_run
    assert "not run" in render([found])
    assert "nothing found" not in render([found])


def test_the_older_form_of_a_place_is_understood() -> None:
    text = (
        "========= Invalid __shared__ write of size 4 bytes\n"
        "=========     at 0x70 in old.cu:12:kernel(int *)\n"
        "=========     by thread (3,0,0) in block (1,2,0)\n"
        "=========     Address 0x40 is out of bounds\n"
        "========= \n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    first = parse_report("memory", text).findings[0].first
    assert (first.file, first.line, first.kernel) == ("old.cu", 12, "kernel(int *)")
    assert (first.block, first.thread) == ((1, 2, 0), (3, 0, 0))


def test_a_student_reads_what_where_and_what_to_do() -> None:
    text = render([report("memory", "out_of_bounds_memcheck")])
    assert "memory: 2 errors." in text
    assert "at out_of_bounds.cu:9, in copy_all(const float *, float *, int), block (32,0,0), thread (0,0,0)" in text
    assert "Compare the index with the allocation's size" in text


def test_checks_are_named_one_by_one_or_all_at_once() -> None:
    assert parse_checks("all") == CHECKS
    assert parse_checks("sync, memory") == ("memory", "sync")
    with pytest.raises(UsageError, match="there is no check 'memcheck'"):
        parse_checks("memcheck")
