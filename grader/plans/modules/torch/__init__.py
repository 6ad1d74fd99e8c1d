"""Stands in for PyTorch in a submission: what host code around Triton kernels uses of it.

There is one device, tensors have no values while a plan is recorded, and what computes is left to kernels. Names have
PyTorch's meaning, so that a file also runs with PyTorch itself. A name that is missing here says what to do instead.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from grader.plans import handles
from grader.plans.dtypes import DTYPES, DType, dtype_of
from grader.plans.handles import Tensor
from grader.plans.tensor_names import Device, NoSuchName, checked_device

from . import autograd as autograd
from . import cuda as cuda

dtype, device, Size = DType, Device, tuple
globals().update(DTYPES)
half, float, double = (DTYPES[f"float{bits}"] for bits in (16, 32, 64))
short, int, long = (DTYPES[f"int{bits}"] for bits in (16, 32, 64))
inf, nan, pi = math.inf, math.nan, math.pi
_random = np.random.default_rng(0)


# ---- tensors ------------------------------------------------------------------------------------------------------


def empty(
    *size: Any, dtype: Any = None, device: Any = None, requires_grad: Any = False, pin_memory: Any = False, **other: Any
) -> Tensor:
    """Memory whose elements are not set. `size` is a shape, or its lengths."""
    if set(other) - {"size", "layout", "memory_format"}:
        raise TypeError(f"torch has no option {min(set(other) - {'size', 'layout', 'memory_format'})} here")
    checked_device(device)
    shape = other.get("size", size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size)
    return handles.empty(tuple(map(operator.index, shape)), float if dtype is None else dtype)


def full(size: Any, fill_value: Any, *, dtype: Any = None, **options: Any) -> Tensor:
    of = dtype_of(type(fill_value)) if dtype is None else dtype  # a bool, an int or a float
    return empty(size, dtype=of, **options).fill_(fill_value)


def zeros(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).zero_()


def ones(*size: Any, **options: Any) -> Tensor:
    return empty(*size, **options).fill_(1)


def empty_like(like: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """A tensor of the same shape. It has the same strides if the elements of `like` lie without gaps, as in PyTorch."""
    return like.new_like(dtype, **options)


def zeros_like(like: Tensor, **options: Any) -> Tensor:
    return empty_like(like, **options).zero_()


def ones_like(like: Tensor, **options: Any) -> Tensor:
    return empty_like(like, **options).fill_(1)


def full_like(like: Tensor, fill_value: Any, **options: Any) -> Tensor:
    return empty_like(like, **options).fill_(fill_value)


def empty_strided(size: Sequence[Any], stride: Sequence[Any], *, dtype: Any = None, **options: Any) -> Tensor:
    reach = [(length - 1) * step for length, step in zip(size, stride, strict=True)]
    return empty(1 + sum(reach), dtype=dtype, **options).as_strided(size, stride)


def is_tensor(thing: object) -> Any:
    return isinstance(thing, Tensor)


# ---- constants: numbers that the host knows, which cannot depend on the input --------------------------------------


def from_numpy(values: NDArray[Any]) -> Tensor:
    return handles.constant(values)


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: Any = False) -> Tensor:
    checked_device(device)
    values = np.asarray(data)
    if dtype is None and values.dtype == np.float64 and not isinstance(data, np.ndarray):
        dtype = float
    return handles.constant(values, dtype)


def as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    return data.to(dtype or data.dtype) if isinstance(data, Tensor) else tensor(data, dtype=dtype, device=device)


def arange(*bounds: Any, dtype: Any = None, device: Any = None) -> Tensor:
    return tensor(np.arange(*bounds), dtype=dtype, device=device)


def manual_seed(seed: Any) -> None:
    global _random
    _random = np.random.default_rng(seed)


def rand(*size: Any, **options: Any) -> Tensor:
    """Numbers from [0, 1)."""
    made = empty(*size, **options)
    return made.copy_(handles.constant(_random.random(made.shape, np.float32), made.dtype))


def randn(*size: Any, **options: Any) -> Tensor:
    made = empty(*size, **options)
    return made.copy_(handles.constant(_random.standard_normal(made.shape, np.float32), made.dtype))


# ---- around functions ---------------------------------------------------------------------------------------------


class no_grad(contextlib.nullcontext[None], contextlib.ContextDecorator):
    """Does nothing, as a decorator, with or without parentheses, and as a context manager."""

    def __new__(cls, function: Any = None) -> Any:
        return function if callable(function) else super().__new__(cls)


inference_mode = enable_grad = no_grad


def compile(function: Any = None, **options: Any) -> Any:
    """The function as it is."""
    return function if callable(function) else lambda decorated: decorated


def __getattr__(name: str) -> NoReturn:
    raise NoSuchName(
        f"torch.{name} is not there for submissions: compute in a kernel, and tables that need no input with numpy "
        "(torch.from_numpy); tensors are made by torch.empty, zeros, full and empty_like"
    )
