"""Registers that change while their thread waits: the sums of wgmma.mma_async, when wgmma.wait_group returns.

In PTX, the sums are operands of mma_async only. Here they also become results of every wait_group, so that the analyses
know where they change; at a wait_group, the sums of a product that is still incomplete keep their old values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cudaemu.analysis.effects import is_wgmma
from cudaemu.ptx import Function, Instr, Operand, Reg, Vec


def sums(function: Function) -> tuple[Vec, ...]:
    """The tuples of registers to which the function's products add. A tuple's position is its number in the runtime."""
    return tuple(dict.fromkeys(_sums(i) for i in function.body if isinstance(i, Instr) and is_wgmma(i, "mma_async")))


def give_waits_their_results(function: Function, sums: Sequence[Vec]) -> None:
    """Add the registers of all sums as the first operand of each wait_group."""
    registers = dict.fromkeys(r for vector in sums for r in vector.items)
    for at, item in enumerate(function.body):
        if isinstance(item, Instr) and is_wgmma(item, "wait_group") and registers:
            function.body[at] = replace(item, operands=(Vec(tuple(registers)), *item.operands))


def _sums(instr: Instr) -> Vec:
    operand: Operand = instr.operands[0]
    assert isinstance(operand, Vec) and all(isinstance(r, Reg) for r in operand.items)
    return operand
