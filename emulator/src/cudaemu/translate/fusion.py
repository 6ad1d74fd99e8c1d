"""Predict which accesses to shared and global memory the assembler widens or narrows.

ptxas combines loads, or stores, of neighbouring words into one instruction of 8 or 16 bytes per lane if it can prove
that the address is a multiple of that size. A GPU then counts one request instead of two or four. ptxas knows the
alignment of shared memory, but not that of a kernel's pointers, unless a vector access through the same register
implies it. If the last elements of a vector load are unused, ptxas makes the load narrower. (Seen in SASS and in ncu's
requests and wavefronts on an H200, CUDA 13.0, for three model solutions and synthetic kernels: docs/counters.md.)

This module is a model of ptxas: within a basic block, accesses to words through the same base register are fused if the
words fill an aligned piece and no instruction between them may touch the same memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cudaemu.analysis.effects import is_special, written
from cudaemu.ptx import Function, Imm, Instr, Mem, Operand, Reg, Sym, Vec
from cudaemu.translate.types import BITS

_PIECES = (16, 8)  # bytes per lane, the widest first
_SPACES = ("shared", "global")
_UNKNOWN = 64  # trailing zero bits of a value that is zero or not known yet


@dataclass(frozen=True)
class Fused:
    """A fused access of `size` bytes per lane at `mem`; `leader` is the instruction that counts it."""

    leader: Instr
    mem: Mem
    size: int


@dataclass(frozen=True)
class _Word:
    instr: Instr
    mem: Mem
    size: int
    space: str


class _Run(NamedTuple):
    """The properties that fused words share: ld or st, the space, the base register, and how often it was written."""

    op: str
    space: str
    base: Reg | Sym
    version: int


def fuse(instrs: list[Instr], zeros: Mapping[str, int], shared: Mapping[str, int]) -> dict[int, Fused]:
    """The fused accesses of a block, by the index of each instruction that is part of a fused access. `zeros` are the
    registers' known trailing zero bits, `shared` the offsets of shared variables."""
    runs = _Runs(zeros, shared, _alignment_by_vectors(instrs))
    versions: dict[str, int] = {}
    for instr in instrs:
        word = _word(instr)
        if word is not None and word.size < _PIECES[0]:
            base = word.mem.base
            assert isinstance(base, Reg | Sym)
            runs.add(_Run(instr.op, word.space, base, versions.get(base.name, 0)), word)
        else:
            for space in _touched(instr):
                runs.close(space)
        for name in written(instr):
            versions[name] = versions.get(name, 0) + 1
    for space in _SPACES:
        runs.close(space)
    return runs.fused


class _Runs:
    """Words that may still be fused with later words."""

    def __init__(
        self, zeros: Mapping[str, int], shared: Mapping[str, int], multiples: Mapping[tuple[str, int], int]
    ) -> None:
        self.fused: dict[int, Fused] = {}
        self._zeros = zeros
        self._shared = shared
        self._multiples = multiples
        self._open: dict[_Run, list[_Word]] = {}

    def add(self, run: _Run, word: _Word) -> None:
        if run.op == "st":
            self.close(run.space, keep=run)  # accesses through other addresses may overlap this one
            words = self._open.get(run, [])
            if any(
                w.mem.offset < word.mem.offset + word.size and word.mem.offset < w.mem.offset + w.size for w in words
            ):
                self._fuse(run, self._open.pop(run))
        else:
            self.close(run.space, only="st")
        self._open.setdefault(run, []).append(word)

    def close(self, space: str, *, only: str = "", keep: _Run | None = None) -> None:
        for run in [r for r in self._open if r.space == space and r != keep and (not only or r.op == only)]:
            self._fuse(run, self._open.pop(run))

    def _fuse(self, run: _Run, words: list[_Word]) -> None:
        left = list(words)
        for size in _PIECES:
            for origin in sorted({self._origin(w, size) for w in left}):
                parts = [w for w in left if self._origin(w, size) == origin and w.size < size]
                covered = {w.mem.offset + b for w in parts for b in range(w.size)}
                if len(parts) < 2 or len(covered) < size or self._alignment(run) < size:
                    continue
                first = min(parts, key=lambda w: w.mem.offset)
                access = Fused(parts[0].instr, Mem(first.mem.base, first.mem.offset), size)
                self.fused.update({w.instr.index: access for w in parts})
                left = [w for w in left if w not in parts]

    def _origin(self, word: _Word, size: int) -> int:
        """The start of the aligned piece that contains the word, relative to the base register (or to shared
        memory)."""
        at = word.mem.offset
        if isinstance(word.mem.base, Sym):
            at += self._shared.get(word.mem.base.name, 0) + word.mem.base.offset
        return at // size * size

    def _alignment(self, run: _Run) -> int:
        if isinstance(run.base, Sym):
            return _PIECES[0] if run.base.name in self._shared else 1
        return max(
            1 << min(self._zeros.get(run.base.name, 0), 16), self._multiples.get((run.base.name, run.version), 1)
        )


def _alignment_by_vectors(instrs: list[Instr]) -> dict[tuple[str, int], int]:
    """The alignment that vector accesses imply for a register's value, by its name and version."""
    multiples: dict[tuple[str, int], int] = {}
    versions: dict[str, int] = {}
    for instr in instrs:
        word = _word(instr)
        if word is not None and isinstance(word.mem.base, Reg) and word.mem.offset % word.size == 0:
            key = word.mem.base.name, versions.get(word.mem.base.name, 0)
            multiples[key] = max(multiples.get(key, 1), word.size)
        for name in written(instr):
            versions[name] = versions.get(name, 0) + 1
    return multiples


def _word(instr: Instr) -> _Word | None:
    """The instruction as an access to whole words of shared or global memory; None for any other instruction, and for
    an instruction with a guard."""
    if instr.op not in ("ld", "st") or instr.guard is not None:
        return None
    space = instr.mods.space
    if space not in _SPACES or any(m in ("volatile", "relaxed", "acquire", "release", "async") for m in instr.mods):
        return None
    mem, value = (instr.operands[1], instr.operands[0]) if instr.op == "ld" else instr.operands[:2]
    if not isinstance(mem, Mem) or isinstance(mem.base, Imm) or instr.type not in BITS:
        return None
    size = BITS[instr.type] // 8 * (len(value.items) if isinstance(value, Vec) else 1)
    return _Word(instr, mem, size, space) if size in (4, 8, 16) else None


def _touched(instr: Instr) -> tuple[str, ...]:
    """The spaces that the instruction may write, or that other threads may write while it waits."""
    if instr.op in ("bar", "barrier", "mbarrier", "membar", "fence", "call", "atom", "red", "cp", "stmatrix", "wmma"):
        return _SPACES
    if instr.op != "st":
        return ()
    space = instr.mods.space
    return _SPACES if space == "generic" else (space,) if space in _SPACES else ()


def used_bytes(instr: Instr, used: Collection[str]) -> int:
    """Bytes per lane that a load or store moves. A vector load is halved as long as the function reads no register of
    its upper half; `used` are the registers that it reads."""
    value = instr.operands[0 if instr.op != "st" else 1]
    width = BITS[instr.type] // 8
    if not isinstance(value, Vec):
        return width
    items = value.items
    while (
        instr.op != "st"
        and len(items) > 1
        and not any(isinstance(i, Reg) and i.name in used for i in items[len(items) // 2 :])
    ):
        items = items[: len(items) // 2]
    return width * len(items)


# ---- known alignment ------------------------------------------------------------------------------------------------


def trailing_zeros(function: Function, shared: Mapping[str, int]) -> dict[str, int]:
    """The number of lowest bits of each register that are zero for every input: all that the assembler knows about
    alignment."""
    instrs = [item for item in function.body if isinstance(item, Instr)]
    zeros = {name: _UNKNOWN for instr in instrs for name in written(instr)}
    changed = True
    while changed:
        changed = False
        for instr in instrs:
            for name in written(instr):
                known = min(zeros[name], _zeros_of_result(instr, zeros, shared))
                if known != zeros[name]:
                    zeros[name], changed = known, True
    return zeros


def _zeros_of_result(instr: Instr, zeros: Mapping[str, int], shared: Mapping[str, int]) -> int:
    def of(operand: Operand) -> int:
        if isinstance(operand, Imm):
            return _zeros_of_number(operand.value) if not operand.width else 0
        if isinstance(operand, Sym):
            return _zeros_of_number(shared[operand.name] + operand.offset) if operand.name in shared else 0
        return zeros.get(operand.name, 0) if isinstance(operand, Reg) and not is_special(operand.name) else 0

    op, sources = instr.op, instr.operands[1:]
    if op in ("mov", "cvta") or (op == "cvt" and all(m[:1] in "us" for m in instr.mods)):
        return of(sources[0])
    if op in ("add", "sub", "or", "xor", "min", "max", "selp"):
        return min(of(sources[0]), of(sources[1]))
    if op == "and":
        return max(of(sources[0]), of(sources[1]))
    if op == "shl" and isinstance(sources[1], Imm):
        return min(_UNKNOWN, of(sources[0]) + sources[1].value)
    if op == "mul" and "hi" not in instr.mods:
        return min(_UNKNOWN, of(sources[0]) + of(sources[1]))
    if op == "mad" and "hi" not in instr.mods:
        return min(of(sources[0]) + of(sources[1]), of(sources[2]))
    return 0


def _zeros_of_number(value: int) -> int:
    return (value & -value).bit_length() - 1 if value else _UNKNOWN
