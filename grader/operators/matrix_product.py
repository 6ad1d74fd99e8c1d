"""The product of two matrices: C = A B.

The header is M N K. The input is A (M, K) and B (K, N), the output C (M, N), each row-major. The cost counts as 2·M·N·K
floating-point operations.

The rounding error of a sum of K products grows with K in any order of summation (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, section 3.1: at most K·2^-24 times the sum of the products' magnitudes). The assignment's
tolerance is therefore for one product and is multiplied by K.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from grader.operators.base import Alternate, Rows, Shape, Tensor, Tensors, WholeOperator, size_of, sizes
from grader.operators.steps import Steps, Sum

F64 = NDArray[np.float64]


class MatrixProduct(WholeOperator):
    name = "matrix_product"
    dimensions = tuple(size_of(name, 16384) for name in ("M", "N", "K"))
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
        return (_product(a, b, rows),)

    def steps(self, shape: Shape) -> Steps:
        product = Sum("C", "mn", "k", (("A", "mk"), ("B", "kn")), sizes(shape)[2])
        return Steps(sums=(product,), results={"C": ("C", 1.0)}, words={"over C": "terms"})

    def alternates(self) -> tuple[Alternate, ...]:
        return tuple(
            Alternate(
                f"rounded_to_{name}",
                f'It matches A and B rounded to {words}: multiply in float32, in Triton with input_precision="ieee".',
                _of_rounded(kept, half),
                rounding=True,
            )
            for name, words, kept, half in (
                ("tf32", "10 bits (TF32 or half)", 0xFFFFE000, 0x1000),
                ("tf32_cut_off", "10 bits (TF32, cut off)", 0xFFFFE000, 0),
                ("bfloat16", "7 bits (bfloat16)", 0xFFFF0000, 0x8000),
            )
        )


def _product(a: NDArray[np.float32], b: NDArray[np.float32], rows: Rows) -> F64:
    return np.asarray(a[rows].astype(np.float64) @ b.astype(np.float64))


def _of_rounded(kept: int, half: int) -> Callable[[Shape, Tensors, Rows], F64]:
    """The product of A and B of whose values only the bits `kept` remain, after `half` of the last one is added."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        bits = (np.ascontiguousarray(tensor, np.float32).view(np.uint32) for tensor in tensors)
        a, b = (((each + np.uint32(half)) & np.uint32(kept)).view(np.float32) for each in bits)
        return _product(a, b, rows)

    return compute


OPERATOR = MatrixProduct()
