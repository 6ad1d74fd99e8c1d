"""Every function of the runtime's headers gives the same results on other processors, and uses nothing they lack."""

import json
from itertools import groupby
from pathlib import Path

import pytest

from emulator.tests.programs import HERE as PROGRAMS
from emulator.tests.programs import build, execute, only_one
from emulator.tests.runtime_functions import hashes
from grader.base.paths import cache_folder
from tests.isa.machines import HERE, OLDER, OTHERS, Machine
from tools.tensor_bits.__main__ import build as build_tensor_bits

pytestmark = pytest.mark.timeout(900)  # two compilations of every function, and qemu
others = pytest.mark.parametrize("machine", [OTHERS[-1], *OLDER], ids=lambda machine: machine.name)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Made by one of the workers that run side by side."""
    kept = cache_folder() / "functions.json"
    with only_one(kept), pytest.MonkeyPatch.context() as patch:
        if not kept.exists():
            HERE.enter(patch)
            kept.write_text(json.dumps(hashes(tmp_path_factory.mktemp("here"))))
    found: dict[str, str] = json.loads(kept.read_text())
    return found


@others
def test_every_function_of_the_runtime_gives_the_same_results(
    machine: Machine, here: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.enter(monkeypatch)
    there = hashes(tmp_path)
    common = here.keys() & there.keys()
    assert common
    assert {name for name in common if here[name] != there[name]} == set(), f"see {tmp_path / machine.name} NAME"


def test_an_operation_on_a_scalar_gives_what_it_gives_on_a_vector(here: dict[str, str]) -> None:
    by_operation = sorted((name.split(maxsplit=1)[1], hash_, name) for name, hash_ in here.items())
    groups = [list(group) for _, group in groupby(by_operation, key=lambda entry: entry[0])]
    assert any(len(group) > 1 for group in groups)
    assert [group for group in groups if len({hash_ for _, hash_, _ in group}) > 1] == []


@others
def test_a_whole_program_runs_there(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends in SIGILL where it was compiled for more than the processor has."""
    machine.enter(monkeypatch)
    done = execute(build(PROGRAMS / "portable.cu"), folder=tmp_path, timeout_s=60 * machine.slower)
    assert done.output == "lanes_that_go_downwards ok\nmixed ok\n" and done.exit_code == 0, done.errors


def test_matrix_instructions_add_up_by_the_rule_on_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this processor's vectors: emulator/tests/test_runtime_arithmetic.py."""
    arm = OTHERS[-1]
    arm.enter(monkeypatch)
    done = execute(build_tensor_bits(tmp_path, gpu=False), "90", "3000", folder=tmp_path, timeout_s=60 * arm.slower)
    assert done.exit_code == 0, done.output + done.errors
