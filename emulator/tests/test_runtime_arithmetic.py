"""Arithmetic of the runtime that C programs compare with a slower form of it, in every width of vectors."""

import subprocess
from pathlib import Path

import pytest

from cudaemu.isa import LANGUAGE, RUNTIME, VARIABLE, host_compiler, instruction_set
from emulator.tests.programs import HERE, toolkit_headers

ISAS = ("", "avx2", "sse")


def differences(isa: str, sources: list[Path], folder: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> str:
    """What a program prints that compares two forms of the arithmetic."""
    monkeypatch.setenv(VARIABLE, isa)
    flags = [*LANGUAGE, *instruction_set().flags, "-O2", "-w", f"-I{RUNTIME}", *more]
    subprocess.run([host_compiler(), *flags, *sources, "-lm", "-o", folder / "compare"], check=True)
    done = subprocess.run([folder / "compare"], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == (done.stdout != "")
    return done.stdout


@pytest.mark.parametrize("isa", ISAS)
def test_tensor_cores_add_up_products_by_the_rule(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [HERE / "tensor_sums.c", RUNTIME / "tensor_sums.c", RUNTIME / "tensor.c"]
    assert differences(isa, sources, tmp_path, monkeypatch) == ""


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("source", ["half_fma.c", "fp8.c"])
def test_small_floats_are_rounded_once(isa: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(isa, [HERE / source], tmp_path, monkeypatch) == ""


def test_kernels_print_with_cudas_conversions_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences("", [HERE / "printing.c"], tmp_path, monkeypatch, f"-I{toolkit_headers()}") == ""
