"""The GPU's oracle of attention in half precision, forward and backward, on the emulator: it is numpy's.

It takes 20 s of CPU to build, so it runs with GRADER_TEST_EVERYTHING=1; tests/gpu/test_measurement.py runs it on a GPU.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from emulator.tests.programs import build, execute
from grader.operators import Shape, load_operator
from grader.operators.attention.grouped_oracle import SOURCE
from grader.operators.tolerance import error_sums

GRADIENT = load_operator("half_attention_gradient")
D = 16

SHAPES: list[Shape] = [
    (1, 4, 2, 20, 45, D, 0, 1, -1, 0, 0.25),
    (2, 3, 3, 70, 33, D, 1, 1, 9, 0, 0.25),  # most queries see nothing
    (1, 4, 1, 33, 18, D, 0, 0, 7, 0, 0.03125),
]


@pytest.fixture(scope="module")
def program() -> Path:
    launcher = Path(__file__).with_name("grouped_oracle.cu")
    return build(launcher, SOURCE, flags=("-std=c++17", f"-DD={D}", "-DGRADIENT=1"))


@pytest.mark.skipif(os.environ.get("GRADER_TEST_EVERYTHING") != "1", reason="takes 20 s of CPU to build")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_expected_outputs_and_plain_errors_are_numpys(shape: Shape, program: Path, tmp_path: Path) -> None:
    oracle = GRADIENT.gpu_oracle(shape, 4.0)
    assert oracle is not None and oracle.defines == {"D": D, "GRADIENT": 1}
    units, values = GRADIENT.units(shape), GRADIENT.unit_input_values(shape)
    numbers = np.random.default_rng(5).standard_normal((units, values)).clip(-4, 4)
    numbers = GRADIENT.inputs(shape)[0].type.rounded(numbers.astype("<f4"))
    (tmp_path / "in").write_bytes(numbers.tobytes())
    size = 2 * GRADIENT.expected_bytes(shape)
    launches = [number for kernel in oracle.kernels for number in (kernel.grid(units)[0], kernel.shared_bytes)]
    arguments = [size, units * oracle.scratch_bytes, *oracle.arguments, *launches]
    done = execute(program, "in", "out", *map(str, arguments), folder=tmp_path)
    assert done.exit_code == 0, done.errors
    answers = np.fromfile(tmp_path / "out", "<f4").reshape(2, units, -1)
    for unit in range(units):
        tensors = GRADIENT.split_unit(shape, numbers[unit])
        begin = 0
        for right, plain in zip(GRADIENT.oracle(shape, tensors), GRADIENT.plain(shape, tensors), strict=True):
            exact, rough = (answer[unit, begin : begin + right.size].reshape(right.shape) for answer in answers)
            begin += right.size
            assert exact == pytest.approx(right, rel=1e-6, abs=1e-12)
            ours, numpys = error_sums(rough, right).errors, error_sums(plain, right).errors
            # A sum in another order may round the other way.
            assert ours.largest == pytest.approx(numpys.largest, rel=0.1, abs=1e-6)
            assert ours.rms == pytest.approx(numpys.rms, rel=0.02, abs=1e-7)
