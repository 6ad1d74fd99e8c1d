"""Which accesses to shared memory the assembler fuses.

ptxas makes one instruction of 8 or 16 bytes a lane of loads, or stores, of neighbouring words where it can prove that
the address is a multiple of that, and a GPU then counts one request instead of two or four. It was seen to do so in
the homework's classic tiled kernel and to leave global memory alone, since the alignment of a kernel's pointers is not
known to it (ncu's requests and wavefronts on an H200, CUDA 13.0, for three model solutions: docs/counters.md).

What holds here is a model of that: within a basic block, words of one base register that together fill an aligned
piece are fused unless something that may touch the same memory stands between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.emulator.analysis.effects import is_special, written
from grader.emulator.ptx import Function, Imm, Instr, Mem, Operand, Reg, Sym, Vec
from grader.emulator.translate.types import BITS

_PIECES = (16, 8)  # bytes of a lane, the widest first
_UNKNOWN = 64  # trailing zero bits of a number that nothing is known of yet


@dataclass(frozen=True)
class Fused:
    """A fused access of `size` bytes a lane at `mem`; `leader` is the instruction that stands for it."""

    leader: Instr
    mem: Mem
    size: int


@dataclass(frozen=True)
class _Word:
    instr: Instr
    mem: Mem
    size: int


def fuse(instrs: list[Instr], zeros: Mapping[str, int], shared: Mapping[str, int]) -> dict[int, Fused]:
    """By id of each instruction of a block that is fused with others: what it became. `zeros` are the registers' known
    trailing zero bits, `shared` the offsets of shared variables."""
    fused: dict[int, Fused] = {}
    open_runs: dict[tuple[str, Reg | Sym, int], list[_Word]] = {}
    versions: dict[str, int] = {}

    def close(keep: tuple[str, Reg | Sym, int] | None = None) -> None:
        for key in [k for k in open_runs if k != keep]:
            _fuse_run(open_runs.pop(key), zeros, shared, fused)

    def close_but_loads() -> None:
        for key in [k for k in open_runs if k[0] == "st"]:
            _fuse_run(open_runs.pop(key), zeros, shared, fused)

    for instr in instrs:
        word = _shared_word(instr)
        if word is not None:
            base = word.mem.base
            assert isinstance(base, Reg | Sym)
            key = (instr.op, base, versions.get(base.name, 0))
            if instr.op == "st":
                close(key)  # whatever was read or written through another address may be the same memory
                _close_overlapping(key, word, open_runs, zeros, shared, fused)
            else:
                close_but_loads()
            open_runs.setdefault(key, []).append(word)
        elif _touches_shared(instr):
            close()
        for name in written(instr):
            versions[name] = versions.get(name, 0) + 1
    close()
    return fused


def _close_overlapping(
    key: tuple[str, Reg | Sym, int],
    word: _Word,
    open_runs: dict[tuple[str, Reg | Sym, int], list[_Word]],
    zeros: Mapping[str, int],
    shared: Mapping[str, int],
    fused: dict[int, Fused],
) -> None:
    run = open_runs.get(key, [])
    if any(w.mem.offset < word.mem.offset + word.size and word.mem.offset < w.mem.offset + w.size for w in run):
        _fuse_run(open_runs.pop(key), zeros, shared, fused)


def _shared_word(instr: Instr) -> _Word | None:
    """The access, when it is one to shared memory of whole words that nothing guards."""
    if (
        instr.op not in ("ld", "st")
        or instr.guard is not None
        or "shared" not in (m.split("::")[0] for m in instr.mods)
    ):
        return None
    if any(m in ("volatile", "relaxed", "acquire", "release", "shared::cluster") for m in instr.mods):
        return None
    mem, value = (instr.operands[1], instr.operands[0]) if instr.op == "ld" else instr.operands[:2]
    if not isinstance(mem, Mem) or isinstance(mem.base, Imm) or instr.mods[-1] not in BITS:
        return None
    size = BITS[instr.mods[-1]] // 8 * (len(value.items) if isinstance(value, Vec) else 1)
    return _Word(instr, mem, size) if size in (4, 8) else None


def _touches_shared(instr: Instr) -> bool:
    """Whether the instruction may write shared memory, or other threads may while it waits."""
    if instr.op in ("bar", "barrier", "membar", "fence", "call", "atom", "red", "cp", "stmatrix", "wmma"):
        return True
    return instr.op == "st" and not any(m.split("::")[0] in ("global", "local", "param") for m in instr.mods)


def _fuse_run(run: list[_Word], zeros: Mapping[str, int], shared: Mapping[str, int], fused: dict[int, Fused]) -> None:
    left = list(run)
    for size in _PIECES:
        for origin in sorted({_origin(w, size, shared) for w in left}):
            parts = [w for w in left if _origin(w, size, shared) == origin and w.size < size]
            covered = {w.mem.offset + b for w in parts for b in range(w.size)}
            if len(parts) < 2 or len(covered) < size or _alignment(parts[0], zeros, shared) < size:
                continue
            first = min(parts, key=lambda w: w.mem.offset)
            access = Fused(parts[0].instr, Mem(first.mem.base, first.mem.offset), size)
            fused.update({id(w.instr): access for w in parts})
            left = [w for w in left if w not in parts]


def _origin(word: _Word, size: int, shared: Mapping[str, int]) -> int:
    """Where the aligned piece begins that the word lies in, counted from the base register (or the whole memory)."""
    at = word.mem.offset
    if isinstance(word.mem.base, Sym):
        at += shared.get(word.mem.base.name, 0) + word.mem.base.offset
    return at // size * size


def _alignment(word: _Word, zeros: Mapping[str, int], shared: Mapping[str, int]) -> int:
    base = word.mem.base
    if isinstance(base, Sym):
        return _PIECES[0] if base.name in shared else 1
    assert isinstance(base, Reg)
    return 1 << min(zeros.get(base.name, 0), 16)


# ---- what is known of numbers -----------------------------------------------------------------------------------------


def trailing_zeros(function: Function, shared: Mapping[str, int]) -> dict[str, int]:
    """For each register how many of its lowest bits are zero, whatever the input: the assembler's knowledge of
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
    if op in ("add", "sub", "or", "xor", "min", "max"):
        return min(of(sources[0]), of(sources[1]))
    if op == "selp":
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
