"""The fast model solutions on a real GPU: every legal shape, as exact as float32, clean under the sanitizers."""

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.support.course import ROOT

MODELS = ("flash2", "tensor_cores", "hopper")
SMALL = ((2, 128, 32), (3, 256, 64))
SHAPES = [(name, shape) for name in MODELS for shape in (*SMALL, (2, 512, 32), (2, 1024, 64))]
SHAPES += [
    (name, shape) for name in ("naive", "tiled") for shape in SMALL
]  # racecheck of tiled.cu took 53 s on the largest
BOUND = 1e-5  # absolute, on U(-3, 3)


@pytest.fixture(params=MODELS)
def program(request: pytest.FixtureRequest, compiled: Callable[..., Path]) -> Path:
    """A model solution, compiled for this GPU."""
    return compiled(ROOT / f"reference/hw4/{request.param}.cu")


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-3, 3, shape).astype("<f4")


def attention(program: Path, numbers: np.ndarray, folder: Path, *before: str) -> np.ndarray:
    """Runs the program, with the words `before` it, on [B, 3, N, d] float32 and returns its output, [B, N, d]."""
    batches, _, rows, dim = numbers.shape
    (folder / "in").write_bytes(struct.pack("<3i", batches, rows, dim) + numbers.tobytes())
    done = subprocess.run(
        [*before, program, folder / "in", folder / "out"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    return np.fromfile(folder / "out", "<f4").reshape(batches, rows, dim)


def expected_rows(numbers: np.ndarray, batch: int, rows: np.ndarray) -> np.ndarray:
    """softmax(Q K^T / sqrt(d)) V in float64, for some rows of a batch."""
    query, key, value = numbers[batch].astype(np.float64)
    scores = query[rows] @ key.T / np.sqrt(query.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights @ value / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("dim", [32, 64])
@pytest.mark.parametrize("rows", [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768])
def test_every_legal_length_is_as_exact_as_float32(rows: int, dim: int, program: Path, tmp_path: Path) -> None:
    numbers = drawn(rows + dim, 3, 3, rows, dim)
    output = attention(program, numbers, tmp_path)
    sample = np.linspace(0, rows - 1, 128).astype(int)
    for batch in range(3):
        error = np.abs(output[batch, sample] - expected_rows(numbers, batch, sample)).max()
        assert error < BOUND, f"batch {batch}"


def test_the_most_batches_are_all_computed(program: Path, tmp_path: Path) -> None:
    numbers = drawn(1, 14000, 3, 128, 32)
    output = attention(program, numbers, tmp_path)
    for batch in (0, 1, 2729, 2730, 2731, 7000, 13998, 13999):  # 2730 batches make up a chunk
        assert np.abs(output[batch] - expected_rows(numbers, batch, np.arange(128))).max() < BOUND


@pytest.mark.parametrize("extreme", ["constant", "one key", "ascending"])
def test_extreme_scores_neither_overflow_nor_vanish(extreme: str, program: Path, tmp_path: Path) -> None:
    numbers = drawn(2, 2, 3, 512, 64)
    if extreme == "constant":
        numbers[:, :2] = 3.0  # all scores 72, the largest there is
    elif extreme == "one key":
        numbers[:, 0], numbers[:, 1] = 3.0, -3.0
        numbers[:, 1, 300] = 3.0  # one score of 72 among -72
    else:
        numbers[:, 0] = 3.0
        numbers[:, 1] = np.linspace(-3, 3, 512)[:, None]  # every tile raises the maximum
    output = attention(program, numbers, tmp_path)
    for batch in range(2):  # float32 scores of 72 are 8e-6 apart: naive.cu, too, is off by 5.8e-5 on "ascending"
        assert np.abs(output[batch] - expected_rows(numbers, batch, np.arange(512))).max() < 1e-4


@pytest.mark.parametrize(("program", "shape"), SHAPES, indirect=["program"])
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
def test_the_sanitizers_find_nothing(tool: str, shape: tuple[int, int, int], program: Path, tmp_path: Path) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    assert sanitizer, "compute-sanitizer is not on PATH: it comes with the CUDA toolkit"
    batches, rows, dim = shape
    numbers = drawn(3, batches, 3, rows, dim)
    attention(program, numbers, tmp_path, sanitizer, "--tool", tool, "--error-exitcode", "9")
