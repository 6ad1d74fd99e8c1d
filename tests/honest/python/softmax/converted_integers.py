# Integers that a kernel computed, converted to integers of 8 bytes and to floating-point numbers.
import torch
import triton
import triton.language as tl


@triton.jit
def find(x_ptr, at_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    tl.store(at_ptr + row, tl.argmax(x, 0))


@triton.jit
def sixteenths(x_ptr, at_ptr, m_ptr, columns):
    row = tl.program_id(0)
    tl.store(m_ptr + row, (tl.load(x_ptr + row * columns + tl.load(at_ptr + row)) * 16).to(tl.int32))


@triton.jit
def finish(x_ptr, m_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.load(m_ptr + row) / 16)
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    at, m = (torch.empty(rows, dtype=torch.int32, device=x.device) for _ in range(2))
    block = triton.next_power_of_2(columns)
    find[(rows,)](x, at, columns, BLOCK=block)
    sixteenths[(rows,)](x, at.to(torch.int64), m, columns)
    finish[(rows,)](x, m.to(torch.float32), y, columns, BLOCK=block)
