"""One table of nvcc's options: the Makefile reader, the reader of compiler calls and the emulator agree on it."""

import re
import subprocess

import pytest

from cudaemu.nvcc_flags import NvccFlags
from cudaemu.nvcc_options import SET_BY_THE_GRADER, TAKES_VALUE
from grader.programs.compiler_calls import calls
from grader.programs.toolkit import find_toolkit


def test_nvcc_knows_every_option_of_the_table() -> None:
    said = subprocess.run([find_toolkit().nvcc, "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*", said))
    known |= {f"-{option}" for option in known}
    known |= {"-m32", "-m64", "-M", "-MM", "-MP", "-v", "-Xcudafe"}  # not in its help
    assert (TAKES_VALUE | SET_BY_THE_GRADER) - known == set()


@pytest.mark.parametrize("option", sorted(TAKES_VALUE))
def test_the_value_of_an_option_is_no_source(option: str) -> None:
    (call,) = calls(f"nvcc {option} value.cu main.cu -o program")
    assert "main.cu" in call.inputs and "value.cu" not in call.inputs
    kept = NvccFlags.parse([option, "value", "-DKEPT"]).compile
    assert kept[-1] == "-DKEPT" and (option in SET_BY_THE_GRADER) <= ("value" not in kept)
