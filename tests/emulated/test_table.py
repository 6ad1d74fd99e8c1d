"""What docs/emulator.md and refusals say of the emulator agrees with its code and with CUDA's headers."""

import re
from pathlib import Path

from cudaemu.lacking import INSTRUCTIONS, lacking_function, lacking_instruction
from cudaemu.translate.writer import HANDLERS
from emulator.tests.programs import toolkit_headers
from tools.emulator_table import absent, functions, page


def test_the_committed_tables_are_current() -> None:
    text = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text(encoding="utf-8")
    assert page(text) == text, "write them anew: python -m tools.emulator_table --write docs/emulator.md"


def test_every_function_of_the_runtime_api_works_or_says_what_is_missing() -> None:
    header = (toolkit_headers() / "cuda_runtime_api.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"CUDARTAPI(?:_CDEV2)? +\(?\*?(cuda\w+)", header))
    working = {name for names in functions().values() for name in names}
    lacking = {name.strip("`") for name, _, _ in absent()}
    assert "cudaMalloc" in declared
    assert declared - working - lacking == set()
    assert working & lacking == set()


def test_no_whole_instruction_is_both_supported_and_refused() -> None:
    assert {op for op in INSTRUCTIONS if "." not in op} & HANDLERS.keys() == set()


def test_the_longest_entry_decides_what_is_said() -> None:
    bulk = lacking_instruction("cp.async.bulk.tensor.2d.shared__cluster.global")
    cube = lacking_instruction("tex.cube.v4.f32.f32")
    assert bulk is not None and bulk.what == "this form of a bulk copy (TMA)"
    assert cube is not None and cube.what == "a cube map"
    assert lacking_instruction("cp.async.ca") is None
    assert lacking_function("cuMemMapArrayAsync").what == "cuMemMapArrayAsync (virtual memory management)"
