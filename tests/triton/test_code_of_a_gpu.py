"""The machine code of kernels that are compiled for a GPU in each run; Triton compiles it without one."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from grader.python import gpu

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def kernel(y_ptr, x):
    tl.device_assert(x > 0)
    tl.store(y_ptr, x * {factor})
"""


def code_in_a_run(folder: Path, factor: float, written_s: int, monkeypatch: pytest.MonkeyPatch) -> str:
    triton, compiler = pytest.importorskip("triton"), pytest.importorskip("triton.backends.compiler")
    folder.mkdir()
    source = folder / "softmax.py"
    source.write_text(KERNEL.format(factor=factor))
    os.utime(source, (written_s, written_s))
    spec = importlib.util.spec_from_file_location("submission", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(gpu, "folder", os.fsencode(folder))
    described = triton.compiler.ASTSource(module.kernel, {"y_ptr": "*fp32", "x": "fp32"})
    options = {"debug": True}
    built = triton.compile(described, target=compiler.GPUTarget("cuda", 90, 32), options=options)
    assert os.fsencode(folder) in built.asm["cubin"]
    return gpu.code_hash(built.asm["cubin"])


def test_the_code_of_a_kernel_is_known_again_in_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, other = (
        code_in_a_run(tmp_path / name, factor, written_s, monkeypatch)
        for name, factor, written_s in (
            ("run-aaaa", 2.0, 1_000_000_000),
            ("run-zzzz", 2.0, 1_700_000_000),
            ("run-cccc", 3.0, 0),
        )
    )
    assert first == second
    assert other != first
