"""The GPU's oracle of attention, forward and backward, on the emulator: it is numpy's.

It takes 40 s of CPU to build, so it runs with GRADER_TEST_EVERYTHING=1; tests/gpu/test_measurement.py runs it on a GPU.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from emulator.tests.programs import build, execute
from grader.operators import Shape, load_operator
from grader.operators.attention.operator import GPU_SOURCE
from grader.operators.tolerance import error_sums

D = 16
CASES: list[tuple[str, Shape]] = [
    ("half_attention_gradient", (1, 4, 2, 20, 45, D, 0, 1, -1, 0, 0.25)),
    ("half_attention_gradient", (2, 3, 3, 70, 33, D, 1, 1, 9, 0, 0.25)),  # most queries see nothing
    ("half_attention_gradient", (1, 4, 1, 33, 18, D, 0, 0, 7, 0, 0.03125)),
    ("attention_gradient", (2, 50, D)),
]


@pytest.mark.skipif(os.environ.get("GRADER_TEST_EVERYTHING") != "1", reason="takes 40 s of CPU to build")
@pytest.mark.parametrize(("name", "shape"), CASES, ids=str)
def test_expected_outputs_and_plain_errors_are_numpys(name: str, shape: Shape, tmp_path: Path) -> None:
    operator = load_operator(name)
    oracle = operator.gpu_oracle(shape)
    assert oracle is not None and oracle.plain == name.startswith("half")
    assert oracle.defines == {"D": D, "GRADIENT": 1} | ({"PLAIN": 1} if oracle.plain else {})
    flags = [f"-D{name}={value}" for name, value in oracle.defines.items()]
    program = build(Path(__file__).with_name("gpu_oracle.cu"), GPU_SOURCE, flags=("-std=c++17", *flags))
    units, values = operator.units(shape), operator.unit_input_values(shape)
    numbers = np.random.default_rng(5).standard_normal((units, values)).clip(-4, 4)
    numbers = operator.inputs(shape)[0].type.rounded(numbers.astype("<f4"))
    (tmp_path / "in").write_bytes(numbers.tobytes())
    size = (1 + oracle.plain) * operator.expected_bytes(shape)
    launches = [number for kernel in oracle.kernels for number in (kernel.blocks * units, kernel.shared_bytes)]
    arguments = [size, units * oracle.scratch_bytes, *oracle.arguments, *launches]
    done = execute(program, "in", "out", *map(str, arguments), folder=tmp_path)
    assert done.exit_code == 0, done.errors
    exact, *rough = np.fromfile(tmp_path / "out", "<f4").reshape(1 + oracle.plain, units, -1)
    for unit in range(units):
        tensors = operator.split_unit(shape, numbers[unit])
        right = np.concatenate([each.ravel() for each in operator.oracle(shape, tensors)])
        assert exact[unit] == pytest.approx(right, rel=1e-6, abs=1e-12)
        begin = 0
        for plain in operator.plain(shape, tensors):
            part = slice(begin, begin + plain.size)
            begin += plain.size
            ours, numpys = (error_sums(one.ravel(), right[part]).errors for one in (rough[0][unit, part], plain))
            # A sum in another order may round the other way.
            assert ours.largest == pytest.approx(numpys.largest, rel=0.1, abs=1e-6)
            assert ours.rms == pytest.approx(numpys.rms, rel=0.02, abs=1e-7)
