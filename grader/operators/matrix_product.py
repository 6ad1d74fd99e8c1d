"""The product of two matrices: C = A B.

The header is M N K. The input is A (M, K) and B (K, N), the output C (M, N), each row-major. The cost counts as 2·M·N·K
floating-point operations.

The rounding error of a sum of K products grows with K in any order of summation (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, section 3.1: at most K·2^-24 times the sum of the products' magnitudes). The assignment's
tolerance is therefore for one product and is multiplied by K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Alternate, Dimension, Rows, Shape, Tensor, Tensors, WholeOperator, sizes
from grader.operators.steps import Steps, Sum

F64 = NDArray[np.float64]

MOST = 16384


def _size(name: str) -> Dimension:
    return Dimension(name, f"from 1 to {MOST}", lambda v: 1 <= v <= MOST)


class MatrixProduct(WholeOperator):
    name = "matrix_product"
    dimensions = (_size("M"), _size("N"), _size("K"))
    unit, units_name = "product", "products"

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        m, n, k = sizes(shape)
        return Tensor("A", m, k), Tensor("B", k, n)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        m, n, _ = sizes(shape)
        return (Tensor("C", m, n),)

    def flops(self, shape: Shape) -> int:
        m, n, k = sizes(shape)
        return 2 * m * n * k

    def magnitude(self, shape: Shape, tensor: str) -> float:
        return float(shape[2])

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> tuple[F64, ...]:
        a, b = tensors
        return (a[rows].astype(np.float64) @ b.astype(np.float64),)

    def steps(self, shape: Shape, units: Sequence[Tensors]) -> Steps:
        _, n, k = sizes(shape)
        return Steps(
            sums=(Sum("C", "mn", "k", (("A", "mk"), ("B", "kn")), k),),
            results={"C": ("C", 1.0)},
            words={"over C": "terms"},
            columns={"A": k, "B": n},
        )

    def alternates(self) -> tuple[Alternate, ...]:
        return _ALTERNATES


# ---- lost precision -------------------------------------------------------------------------------------------

Compute = Callable[[Shape, Tensors, Rows], F64]


def _rounded(to: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]) -> Compute:
    """The product of A and B after the bits of their values were rounded."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        a, b = (to(np.ascontiguousarray(t, np.float32).view(np.uint32)).view(np.float32) for t in tensors)
        return a[rows].astype(np.float64) @ b.astype(np.float64)

    return compute


_TF32, _BFLOAT16 = np.uint32(0xFFFFE000), np.uint32(0xFFFF0000)
"""Masks of the bits that remain."""


_COARSE = 'It matches A and B rounded to {}: multiply in float32, in Triton with input_precision="ieee".'
_ALTERNATES: tuple[Alternate, ...] = (
    *(
        Alternate(f"rounded_to_{name}", _COARSE.format(words), _rounded(to), rounding=True)
        for name, words, to in (
            ("tf32", "10 bits (TF32 or half)", lambda x: (x + 0x1000) & _TF32),
            ("tf32_cut_off", "10 bits (TF32, cut off)", lambda x: x & _TF32),
            ("bfloat16", "7 bits (bfloat16)", lambda x: (x + 0x8000) & _BFLOAT16),
        )
    ),
)

OPERATOR = MatrixProduct()
