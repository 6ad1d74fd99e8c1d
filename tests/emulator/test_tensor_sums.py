"""Sums of products on tensor cores: the vector code against the rule written out, in every width of vectors."""

import subprocess
from pathlib import Path

import pytest

from grader.emulator.native import HOST_FLAGS, RUNTIME, host_compiler, isa_flags
from tests.emulator.programs import HERE


@pytest.mark.parametrize("isa", ["", "avx2", "sse"])
def test_vectors_add_up_products_by_the_rule(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_EMULATOR_ISA", isa)
    program = tmp_path / "sums"
    sources = [HERE / "tensor_sums.c", RUNTIME / "tensor_sums.c"]
    flags = [*HOST_FLAGS, *isa_flags(), "-O2", "-w", f"-I{RUNTIME}"]
    subprocess.run([host_compiler(), *flags, *sources, "-lm", "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout == ""
    assert done.returncode == 0
