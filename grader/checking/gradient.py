"""Checks gradients against central differences, which need no formula for the gradient.

An operator that is `differentiable` computes a function O of its inputs and the gradient of L = Σ dO ∘ O: output dX
belongs to input X. Every entry x of X is moved by ±h and L computed again in float64, by the definition of O. Then
(L(x + h) − L(x − h)) / 2h is the gradient, with an error of about h² and of 1e-16 / h from rounding.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.operators import Operator, Shape

STEP = 1e-4
"""The step h. Both errors are then about 1e-8, a ten-thousandth of float16's rounding error."""
QUICK_FLOPS, MOST_FLOPS = 1e10, 3e11
"""The FLOPs of a gradient check that takes some seconds, and the FLOPs of one that takes half a minute."""

F64 = NDArray[np.float64]


def flops(operator: Operator, shape: Shape) -> float:
    """The FLOPs of checking the gradients of one testcase."""
    entries = sum(tensor.size for tensor in operator.outputs(shape)[1:])
    return 2.0 * entries * operator.flops(shape)


def differences(operator: Operator, shape: Shape, tensors: tuple[NDArray[np.float32], ...]) -> tuple[F64, ...]:
    """The outputs of one unit: O by definition, and the gradients by differences."""
    names = [tensor.name for tensor in operator.inputs(shape)]
    values = [tensor.astype(np.float64) for tensor in tensors]
    outputs = operator.outputs(shape)
    weight = values[names.index(f"d{outputs[0].name}")]
    found = [operator.function(shape, values)]
    for output in outputs[1:]:
        moved = values[names.index(output.name.removeprefix("d"))]
        gradient = np.zeros_like(moved)
        for place in np.ndindex(moved.shape):
            kept = moved[place]
            for step in (STEP, -STEP):
                moved[place] = kept + step
                gradient[place] += (weight * operator.function(shape, values)).sum() / (2 * step)
            moved[place] = kept
        found.append(gradient)
    return tuple(found)


def write_differences(operator: Operator, shape: Shape, input: Path, target: Path) -> None:
    """Write a file like the expected output of `input`, with gradients by differences."""
    layouts = operator.expected_layouts(shape)
    with input.open("rb") as source, target.open("wb") as file:
        for unit in range(operator.units(shape)):
            tensors = operator.read_unit(source, shape, unit)
            for layout, values in zip(layouts, differences(operator, shape, tensors), strict=True):
                layout.write(file.fileno(), unit, values)
