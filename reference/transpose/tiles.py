"""The transpose of a matrix in Triton: a program turns a tile of 32 x 32.

Theory of operation

    The tile is loaded row by row and stored row by row: Triton moves it through shared memory in between, so both are
    coalesced.
"""

import triton
import triton.language as tl


@triton.jit
def transpose(a_ptr, t_ptr, rows, columns, TILE: tl.constexpr):
    row = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)
    column = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tile = tl.load(a_ptr + row[:, None] * columns + column[None, :], mask=inside)
    inside = (column < columns)[:, None] & (row < rows)[None, :]
    tl.store(t_ptr + column[:, None] * rows + row[None, :], tl.trans(tile), mask=inside)


def solve(a, t, rows, columns):
    transpose[(triton.cdiv(columns, 32), triton.cdiv(rows, 32))](a, t, rows, columns, TILE=32)
