"""A few attacks of each kind are stopped; `make redteam` tries all, as root and as an ordinary user."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.verdict import Verdict
from grader.grading.closer_look import CloserLook
from grader.programs.engine import select_engine
from grader.programs.host_lines import read_lines
from grader.records.record import Record
from grader.sandbox.budget import Budget, drawing
from tests.redteam.__main__ import Attack, judge, processor_s, read_attacks, run_all, timed
from tests.support.records import made_record, made_test

QUICK = ["read_expected", "output_link_outside", "makefile_shell", "forge_trace"]
"""One for each way into the grader: testcases, files, builds, traces. tests/test_sandbox.py and `grader doctor` try
what the sandbox promises."""


def test_attacks_of_every_kind_are_stopped(place_for_attacks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_checks = property(lambda look: look.submission.id == "read_expected")  # a second build for each takes a minute
    monkeypatch.setattr(CloserLook, "possible", with_checks)
    attacks = [attack for attack in read_attacks() if attack.name in QUICK]
    results = list(run_all(attacks, select_engine("emulator", "sm_80"), place_for_attacks))
    assert [(result.attack.name, result.bypasses) for result in results] == [(name, ()) for name in sorted(QUICK)]


def test_each_attack_says_what_must_become_of_it() -> None:
    attacks = read_attacks()
    assert set(QUICK) <= {attack.name for attack in attacks}
    assert all(attack.what and attack.verdicts for attack in attacks)


def record_of(verdict: str, output: str, flags: tuple[str, ...] = ()) -> Record:
    return made_record("x", tests=[made_test("s01", Verdict(verdict), output=output, flags=flags, speedup=None)])


@pytest.mark.parametrize(
    ("verdict", "output", "flags", "damage", "bypassed"),
    [
        ("passed", "", ("odd",), (), False),
        ("passed", "", (), (), True),
        ("wrong_answer", "", ("odd",), (), True),
        ("passed", "BYPASSED: the secret", ("odd",), (), True),
        ("passed", "", ("odd",), ("a process is still there",), True),
    ],
)
def test_the_runner_itself_sees_a_bypass(
    verdict: str, output: str, flags: tuple[str, ...], damage: tuple[str, ...], bypassed: bool
) -> None:
    attack = Attack("x", Path(os.devnull), "tries", frozenset({"passed"}), flagged=True, gpu=False)
    assert bool(judge(attack, record_of(verdict, output, flags), damage).bypasses) is bypassed


def an_attack(**expected: object) -> Attack:
    attack = Attack("x", Path(os.devnull), "tries", frozenset({"passed"}), flagged=False, gpu=False)
    return replace(attack, **expected)  # type: ignore[arg-type]


def test_a_time_below_that_of_the_hidden_work_is_a_bypass_unless_it_counts_for_nothing() -> None:
    record = record_of("passed", "")
    fast = record.tests[0].model_copy(update={"gpu_ms": 6.0, "speedup": 1000.0})
    (said,) = judge(an_attack(least_ms=40), record.model_copy(update={"tests": (fast,)}), ()).bypasses
    assert said == "s01 counts as 6 ms, 40 ms expected at least"
    refused = fast.model_copy(update={"speedup": None, "flags": ("odd",)})
    assert judge(an_attack(least_ms=40), record.model_copy(update={"tests": (refused,)}), ()).bypasses == ()


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202egnorw", "a\x00b", "\x08"])
def test_what_commands_a_terminal_is_a_bypass_wherever_it_stands(text: str) -> None:
    (said,) = judge(an_attack(), record_of("passed", text), ()).bypasses
    assert "control character" in said
    assert judge(an_attack(), record_of("passed", "two\n\tlines, \\u001b spelled out"), ()).bypasses == ()


def test_keeping_the_grader_busy_or_waiting_is_a_bypass() -> None:
    result = judge(an_attack(within_s=60), record_of("passed", ""), ())
    assert timed(replace(result, seconds=400, cpu_s=59)).bypasses == ()
    assert timed(replace(result, seconds=40, cpu_s=70)).bypasses == ()
    assert timed(replace(result, seconds=80, cpu_s=70)).bypasses == (
        "it kept the grader for 80 s, 70 s of them computing",
    )
    assert timed(replace(result, seconds=500, cpu_s=1)).bypasses == (
        "it kept the grader for 500 s, 1 s of them computing",
    )


def test_the_processor_time_of_the_room_counts() -> None:
    before, own = processor_s(), sum(os.times()[:4])
    with drawing(Budget(60, "Reading")):  # which waits until the call's process has ended
        read_lines("0x1\n" * 200_000)
    assert processor_s() - before > sum(os.times()[:4]) - own


def test_an_attack_on_the_board_works_only_if_its_time_gives_a_place() -> None:
    attack = Attack("board", Path("board.cu"), "x", frozenset({"passed"}), flagged=False, gpu=True, no_place=True)
    once = made_test("t20", gpu_ms=0.01, speedup=97_641.0, timing=None)
    assert judge(attack, made_record("x", tests=[once]), ()).bypasses == ()
    [bypass] = judge(attack, made_record("x", tests=[made_test("t21", gpu_ms=2.0, speedup=500.0)]), ()).bypasses
    assert bypass == "t21 has a place on the board with 500 x"


def test_attacks_on_gpu_times_are_of_every_kind() -> None:
    """Run on a machine with a GPU; elsewhere `make redteam` says how many it leaves out."""
    on_a_gpu = {attack.name for attack in read_attacks() if attack.gpu}
    assert {"copies_in_device_memory", "launch_from_a_kernel", "launch_a_graph_from_a_kernel"} <= on_a_gpu
    assert {"board_by_a_forged_trace", "board_by_the_cpu", "forge_whole_trace"} <= on_a_gpu
