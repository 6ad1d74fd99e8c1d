"""What a program says is large costs the grader nothing, and what it reserves fits into what there is."""

from pathlib import Path

import pytest

from cudaemu import build
from cudaemu.build import Extras, Unsupported
from cudaemu.nvcc import Output
from cudaemu.ptx import parse
from cudaemu.translate import translate_module
from emulator.tests.programs import HERE, execute, host
from emulator.tests.programs import build as build_program

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .b8 large[400000000] = {1, 0, 0, 2};
"""


def test_the_zeros_after_an_arrays_initial_values_are_left_to_the_c_compiler() -> None:
    translation, findings = translate_module(parse(PTX), prefix="m0", lanes=8)
    assert not findings
    assert "[400000000] = {1,0,0,2};" in translation.tables
    assert len(translation.tables) < 10_000


def test_ptx_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "hw4.ptx").open("wb") as file:
        file.truncate(1 << 40)
    ptx = Output("hw4.cu", tmp_path / "hw4.ptx", "", tmp_path)
    with pytest.raises(Unsupported, match=r"the PTX of hw4\.cu, which is 1,099,511,627,776 bytes"):
        build._translated([ptx], 0, Extras(), host())


@pytest.mark.parametrize("gigabytes", [10, 24])
def test_a_program_runs_where_little_address_space_is_left(
    gigabytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADER_TEST_RUNNER", f"prlimit --as={gigabytes << 30}")
    done = execute(build_program(HERE / "portable.cu"), folder=tmp_path)
    assert done.output == "lanes_that_go_downwards ok\nmixed ok\n" and done.exit_code == 0
