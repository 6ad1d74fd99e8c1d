# The problem as a frozen dataclass, with class methods, properties and type hints.
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + start + column, weights / tl.sum(weights, 0), mask=column < columns)


@dataclass(frozen=True)
class Problem:
    rows: int
    columns: int
    values: torch.Tensor = field(repr=False)

    @classmethod
    def of(cls, values: torch.Tensor) -> Problem:
        return cls(*values.shape, values)

    @cached_property
    def block(self) -> int:
        return triton.next_power_of_2(self.columns)

    def solve(self, results: torch.Tensor) -> Any:
        softmax[self.rows, 1, 1](self.values, results, self.columns, self.block)
        return results


def solve(x: torch.Tensor, y: torch.Tensor, rows: int, columns: int) -> None:
    Problem.of(x).solve(y)
