"""Checks what an operator's functions return, so that a slip such as a missing comma is reported at its own line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import UsageError
from grader.operators.base import Alternate, Operator, Rows, Shape, Tensors
from grader.operators.layout import Tensor


def check_sizes(operator: Operator, shape: Shape) -> None:
    """Raise UsageError if a function that describes files or costs returns anything but numbers or tensors."""
    for count in (operator.units, operator.flops):
        if not isinstance(number := count(shape), int | float | np.number):
            raise _wrong(count, "a number", number)
    for tensors in (operator.inputs, operator.outputs):
        found: Any = tensors(shape)
        if not isinstance(found, tuple) or not found or not all(isinstance(each, Tensor) for each in found):
            raise _wrong(tensors, "a tuple of Tensor, such as (Tensor(...),)", found)


def right_rows(operator: Operator, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[Any, ...]:
    """What the oracle computes. Raises UsageError if it is not one array of the right shape for each output tensor."""
    right: Any = operator.oracle(shape, tensors, rows)
    shapes = tuple(_selected(tensor, rows) for tensor in operator.outputs(shape))
    if not isinstance(right, tuple) or tuple(map(np.shape, right)) != shapes:
        raise _wrong(operator.oracle, f"a tuple of arrays of shape {', '.join(map(str, shapes))}", right)
    return right


def mistaken_rows(
    operator: Operator, alternate: Alternate, shape: Shape, tensors: Tensors, rows: Rows = slice(None)
) -> NDArray[np.float64]:
    """What an alternate computes. Raises UsageError if it is not an array of the right shape for its output tensor."""
    computed = alternate.compute(shape, tensors, rows)
    wanted = _selected(operator.outputs(shape)[alternate.tensor], rows)
    if np.shape(computed) != wanted:
        raise _wrong(alternate.compute, f"an array of shape {wanted} for the rows it is given", computed)
    return computed


def _selected(tensor: Tensor, rows: Rows) -> tuple[int, int]:
    count = len(range(*rows.indices(tensor.rows))) if isinstance(rows, slice) else len(rows)
    return count, tensor.columns


def _wrong(function: Callable[..., Any], expected: str, found: object) -> UsageError:
    code = getattr(function, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}: {code.co_name}" if code else repr(function)
    each = found if isinstance(found, tuple) else (found,)
    kinds = ", ".join(f"array of shape {a.shape}" if isinstance(a, np.ndarray) else type(a).__name__ for a in each)
    words = f"a tuple of ({kinds})" if isinstance(found, tuple) else kinds
    return UsageError(f"{place} must return {expected}; it returns {words}.")
