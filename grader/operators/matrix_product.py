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


# ---- likely mistakes ------------------------------------------------------------------------------------------

Compute = Callable[[Shape, Tensors, Rows], F64]


def _some_terms(terms: Callable[[int], slice]) -> Compute:
    """The product with only some of the K terms of each sum."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        a, b = (t.astype(np.float64) for t in tensors)
        used = terms(int(shape[2]))
        return a[rows][:, used] @ b[used]

    return compute


def _reshaped(which: int) -> Compute:
    """The product with A or B read as if it were stored column by column."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        a, b = (t.astype(np.float64) for t in tensors)
        wrong = (a, b)[which]
        wrong = wrong.reshape(wrong.shape[::-1]).T
        return wrong[rows] @ b if which == 0 else a[rows] @ wrong

    return compute


def _exchanged(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
    m, n, k = sizes(shape)
    values = np.concatenate([t.ravel() for t in tensors]).astype(np.float64)
    return values[k * n :].reshape(m, k)[rows] @ values[: k * n].reshape(k, n)


def _rounded(to: Callable[[NDArray[np.uint32]], NDArray[np.uint32]]) -> Compute:
    """The product of A and B after the bits of their values were rounded."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        a, b = (to(np.ascontiguousarray(t, np.float32).view(np.uint32)).view(np.float32) for t in tensors)
        return a[rows].astype(np.float64) @ b.astype(np.float64)

    return compute


_TF32, _BFLOAT16 = np.uint32(0xFFFFE000), np.uint32(0xFFFF0000)
"""Masks of the bits that remain."""


def _is_vector(shape: Shape, which: int) -> bool:
    """Whether A or B is a single row or column, which has the same memory layout as its transpose."""
    m, n, k = sizes(shape)
    return 1 in ((m, k), (k, n))[which]


def _tiles() -> list[Alternate]:
    found = []
    for tile in (16, 32, 8, 64, 128):
        found += [
            Alternate(
                f"part_tile_{tile}_dropped",
                f"It matches sums without their last K mod {tile} terms: K is not a multiple of the tile, and the loop "
                f"over tiles runs K / {tile} times, rounded down; round up, and load zeros beyond the edge.",
                _some_terms(lambda k, t=tile: slice(0, k - k % t)),  # type: ignore[misc]
                lambda shape, t=tile: shape[2] % t == 0,  # type: ignore[misc]
                steps=("bound",),
            ),
            Alternate(
                f"last_tile_{tile}_dropped",
                f"It matches sums without their last {tile} terms: the loop over tiles of K ends one tile early.",
                _some_terms(lambda k, t=tile: slice(0, k - t)),  # type: ignore[misc]
                lambda shape, t=tile: shape[2] <= t,  # type: ignore[misc]
                steps=("bound",),
            ),
            Alternate(
                f"last_tile_{tile}_only",
                f"It matches sums of the last tile of {tile} terms only: each tile starts the sum again (or "
                "assigns to it instead of adding).",
                _some_terms(lambda k, t=tile: slice((k - 1) // t * t, k)),  # type: ignore[misc]
                lambda shape, t=tile: shape[2] <= t,  # type: ignore[misc]
                steps=("output_sum",),
            ),
            Alternate(
                f"first_tile_{tile}_only",
                f"It matches sums of the first {tile} terms only: the loop over tiles of K runs once.",
                _some_terms(lambda k, t=tile: slice(0, t)),  # type: ignore[misc]
                lambda shape, t=tile: shape[2] <= t,  # type: ignore[misc]
                steps=("bound",),
            ),
        ]
    return found


_IN_FLOAT32 = 'multiply in float32, in Triton with input_precision="ieee"'
_COARSE = "It matches products of A and B rounded to {}, which is too coarse here: {}."
_ALTERNATES: tuple[Alternate, ...] = (
    *_tiles(),
    Alternate(
        "b_transposed",
        "It matches a product in which B is read column by column: element (k, column) of B is b[k * N + column].",
        _reshaped(1),
        lambda shape: _is_vector(shape, 1),
        steps=("load_k",),
    ),
    Alternate(
        "a_transposed",
        "It matches a product in which A is read column by column: element (row, k) of A is a[row * K + k].",
        _reshaped(0),
        lambda shape: _is_vector(shape, 0),
        steps=("load_q",),
    ),
    Alternate(
        "matrices_exchanged",
        "It matches a product in which B is read from the file before A: A comes first.",
        _exchanged,
        steps=("read_order", "read"),
    ),
    Alternate(
        "last_term_dropped",
        "It matches sums without their last term: the loop over k ends at K − 1.",
        _some_terms(lambda k: slice(0, k - 1)),
        steps=("bound",),
    ),
    Alternate(
        "first_term_dropped",
        "It matches sums without their first term: the loop over k starts at 1.",
        _some_terms(lambda k: slice(1, k)),
        steps=("bound",),
    ),
    *(
        Alternate(
            f"rounded_to_{name}", _COARSE.format(words, remedy), _rounded(to), rounding=True, steps=("output_sum",)
        )
        for name, words, remedy, to in (
            ("tf32", "10 bits of mantissa (TF32 or half precision)", _IN_FLOAT32, lambda x: (x + 0x1000) & _TF32),
            ("tf32_cut_off", "10 bits of mantissa (TF32, cut off)", _IN_FLOAT32, lambda x: x & _TF32),
            ("bfloat16", "bfloat16, 7 bits of mantissa", _IN_FLOAT32, lambda x: (x + 0x8000) & _BFLOAT16),
        )
    ),
)

OPERATOR = MatrixProduct()
