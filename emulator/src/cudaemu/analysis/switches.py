"""Branches that the number of the change to try decides (checking/repairs).

A program with hundreds of changes tests that number, %envreg0, in its innermost loops. Such a test becomes the block's
way on, `number + offset < count`, and costs no rows of threaded code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cudaemu.analysis.effects import read, written
from cudaemu.ptx import Function, Imm, Instr, Reg
from cudaemu.ptx.model import Label

NUMBER = "%envreg0"
_WORD = 1 << 32
_BELOW = {"lt": (0, False), "lo": (0, False), "ge": (0, True), "hs": (0, True),
          "le": (1, False), "ls": (1, False), "gt": (1, True), "hi": (1, True)}  # fmt: skip
"""By unsigned comparison: what to add to the right side so that it becomes `<`, and whether it is then negated."""


@dataclass(frozen=True, slots=True)
class InRange:
    """Whether the number plus `offset`, in 32 bits, is less than `count`."""

    offset: int
    count: int

    @property
    def negated(self) -> InRange:
        return InRange((self.offset - self.count) % _WORD, (_WORD - self.count) % _WORD)


def decided(function: Function) -> None:
    """Give branches that only the number decides two more operands, the offset and the count of their range, in place
    of their guards, and leave out what computed them."""
    instrs = [item for item in function.body if isinstance(item, Instr)]
    writes = Counter(name for instr in instrs for name in written(instr))
    numbers, tests, makers = dict[str, int](), dict[str, InRange](), set[int]()
    for instr in instrs:
        names = written(instr)
        if instr.guard is None and len(names) == 1 and writes[names[0]] == 1:
            if (offset := _offset(instr, numbers)) is not None:
                numbers[names[0]] = offset
                makers.add(instr.index)
            elif (test := _test(instr, numbers, tests)) is not None:
                tests[names[0]] = test
                makers.add(instr.index)
    if tests:
        body = [_branch(item, tests) if isinstance(item, Instr) else item for item in function.body]
        function.body[:] = reversed(list(_needed(body, makers)))


def _needed(body: Sequence[Instr | Label], makers: set[int]) -> Iterator[Instr | Label]:
    """The items of a body, last first, without those among the `makers` whose results nothing reads."""
    uses = Counter(name for item in body if isinstance(item, Instr) for name in read(item))
    for item in reversed(body):
        if isinstance(item, Instr) and item.index in makers and not any(uses[name] for name in written(item)):
            uses.subtract(read(item))
        else:
            yield item


def _offset(instr: Instr, numbers: dict[str, int]) -> int | None:
    """What the instruction adds to the number; None if it computes anything else."""
    sources = [o.name if isinstance(o, Reg) else o.value if isinstance(o, Imm) else "" for o in instr.operands[1:]]
    if instr.op == "mov" and len(sources) == 1:
        return 0 if sources[0] == NUMBER else numbers.get(str(sources[0]))
    if instr.op == "add" and instr.type in ("s32", "u32") and len(instr.mods) == 1:
        left, right = sources
        if isinstance(left, str) and left in numbers and isinstance(right, int):
            return (numbers[left] + right) % _WORD
    return None


def _test(instr: Instr, numbers: dict[str, int], tests: dict[str, InRange]) -> InRange | None:
    if instr.op == "not" and isinstance(source := instr.operands[1], Reg):
        return tests[source.name].negated if source.name in tests and not source.negated else None
    if instr.op != "setp" or len(instr.operands) != 3 or len(instr.mods) != 2:
        return None
    left, right = instr.operands[1:]
    if not isinstance(left, Reg) or left.name not in numbers or not isinstance(right, Imm) or right.width:
        return None
    offset, value, how = numbers[left.name], right.value % _WORD, instr.mods.action
    if how in ("eq", "ne"):
        equal = InRange((offset - value) % _WORD, 1)
        return equal if how == "eq" else equal.negated
    if how not in _BELOW or instr.type != "u32":
        return None
    more, negated = _BELOW[how]
    if not 0 < value + more < _WORD:
        return None
    below = InRange(offset, value + more)
    return below.negated if negated else below


def _branch(instr: Instr, tests: dict[str, InRange]) -> Instr:
    if instr.op != "bra" or instr.guard is None or instr.guard.name not in tests:
        return instr
    test = tests[instr.guard.name]
    test = test.negated if instr.guard.negated else test
    return replace(instr, guard=None, operands=(*instr.operands, Imm(test.offset), Imm(test.count)))
