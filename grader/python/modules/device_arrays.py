"""Tensors for Triton programs, the same on every machine: PyTorch's on a GPU, small arrays of the grader's own where
there is no PyTorch or no GPU.

    x = device_arrays.from_numpy(values)            a copy on the device, of the values' type or another one
    y = device_arrays.empty((rows, columns), "float16")
    kernel[grid](x, y, x.stride(0), ...)
    result = device_arrays.to_numpy(y)              a copy on the host; bfloat16 becomes float32

Both kinds have data_ptr(), dtype, shape and stride().
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

if os.environ.get("GRADER_PYTHON_ENGINE", "cuda") == "cuda":
    import torch

    def empty(shape: Sequence[int], dtype: str = "float32") -> Any:
        return torch.empty(tuple(shape), dtype=getattr(torch, dtype), device="cuda")

    def zeros(shape: Sequence[int], dtype: str = "float32") -> Any:
        return torch.zeros(tuple(shape), dtype=getattr(torch, dtype), device="cuda")

    def from_numpy(values: np.ndarray, dtype: str | None = None) -> Any:
        there = torch.from_numpy(np.require(values, requirements=["C", "W"])).to("cuda")
        return there if dtype is None else there.to(getattr(torch, dtype))

    def to_numpy(array: Any) -> np.ndarray:
        return (array.float() if array.dtype == torch.bfloat16 else array).cpu().numpy()

else:
    from grader.python.arrays import Array, empty, from_numpy, zeros

    def to_numpy(array: Array) -> np.ndarray:
        return array.numpy()
