"""Finds slips: places where a source contradicts itself, which are mistakes no matter what the values are.

A sum of products in an int, a maximum that starts above every score, results that are copied back before the launch
are wrong in every program. Each rule follows from declarations and calls that the reader of C++ sees; where it does not
see one, as with a size that comes from a function, nothing is said. Slips are looked for only after a program has
failed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from grader.cpp.reading import Files, asked, read_source
from grader.cpp.source import Call, Item, Source
from grader.findings import Finding
from grader.sandbox.room import confined

_MOST = 50
_SURE = 0.95
_WORD = re.compile(r"[A-Za-z_]\w*")
_BYTES = {"float": 4, "int": 4, "double": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "char": 1, "float4": 16}
_SIZE_ARGUMENT = {"cudaMalloc": 1, "cudaMallocManaged": 1, "malloc": 0}
_SIZE_ARGUMENT |= dict.fromkeys(("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset", "cudaMemsetAsync"), 2)
_SIZES_SAID = re.compile(r"sizeof|byte|size|stride|pitch", re.IGNORECASE)
_WHOLE = frozenset({"int", "long", "short", "unsigned", "size_t", "unsigned int", "int64_t", "int32_t", "uint32_t"})
_REAL = frozenset({"float", "double", "half", "__half", "float2", "float4", "__nv_bfloat16"})
_NARROW = {16: re.compile(r"short|int16_t"), 8: re.compile(r"char|int8_t")}
_LARGE = re.compile(
    r"\+?(?:std::)?(?:INFINITY|FLT_MAX|HUGE_VALF?|CUDART_INF_F|numeric_limits<float>::(?:max|infinity)\(\))"
)
_MAXIMA = frozenset({"fmaxf", "fmax", "max", "__hmax"})
_GUARD = re.compile(r"\s*(\w+)\s*>=\s*(\w+)\s*")


def find_slip(files: Files, pattern: Finding | None = None) -> Finding | None:
    """The first slip in a submission's files, whose output looks like `pattern`; None if there is none."""
    bits = pattern.values.get("bits") if pattern is not None else None
    return next(iter(slips(tuple(files), bits if isinstance(bits, int) else 0)), None)


@lru_cache(maxsize=16)  # every failed test of a submission asks
def slips(files: Files, bits: int = 0) -> tuple[Finding, ...]:
    """The slips in a submission's files; none if they cannot be read within the limits. Sums in numbers of so many
    `bits` are a slip where the output is right but for multiples of 2^bits."""
    return tuple(asked([], found_in, files, bits))


@confined(cpu_s=8, memory_bytes=2 << 30)
def found_in(files: Files, bits: int) -> Annotated[list[Finding], Field(max_length=_MOST)]:
    """At most `_MOST` slips. In the room."""
    source = read_source(files)
    narrow = _narrow_sums(source, _NARROW[bits]) if bits in _NARROW else ()
    rules = (_sizes_in_values, _high_maxima, _whole_sums, _whole_quotients, _narrow_guards)
    found = itertools.chain(narrow, *(rule(source) for rule in rules))
    return list(itertools.islice(found, _MOST))


def found_at(item: Item | None, kind: str, certainty: float, **facts: object) -> Finding:
    """A finding at the first line of an item of a source."""
    place = {"file": item.file, "line": item.line} if item is not None else {}
    return Finding.from_facts(kind, facts, certainty=certainty, **place)


def _narrow_sums(source: Source, narrow: re.Pattern[str]) -> Iterator[Finding]:
    """Numbers of a narrow type, to which something is added."""
    added = {(a.function, a.name) for a in source.assignments if "+" in a.operator + a.value}
    for each in source.variables:
        sums = (each.function, each.name) in added or (not each.pointers and "+" in each.value)
        if narrow.search(each.type) and sums:
            yield found_at(each, "narrow_sum", _SURE, name=each.name, type=each.type)


def _sizes_in_values(source: Source) -> Iterator[Finding]:
    """Numbers of values where a size in bytes belongs: a product of known whole numbers, none of them a size, for an
    array whose elements have more than one byte."""
    for call in source.calls_of(*_SIZE_ARGUMENT):
        place = _SIZE_ARGUMENT[call.name]
        element = _element(source, call)
        if place >= len(call.arguments) or _BYTES.get(element, 1) == 1:
            continue
        size = _resolved(source, call.arguments[place], call)
        counts = "*" in size and _WORD.search(size) and not _SIZES_SAID.search(size)
        if counts and not re.search(rf"\b0*{_BYTES[element]}[uUlL]*\b", size):
            yield found_at(call, "bytes_without_sizeof", _SURE, call=call.name, element=element)


def _element(source: Source, call: Call) -> str:
    """The type of the elements of the array that a call is about; '' if unknown."""
    named = [call.given] if call.name == "malloc" else call.arguments[:2]
    for text in named:
        plain = re.sub(r"^(?:\([^()]*\)|[&*\s])+", "", text)
        if name := _WORD.match(plain):
            kind, pointers = source.type_of(name[0], call.file, call.line)
            if kind and pointers:
                return kind.replace("const", "").strip()
    return ""


def _resolved(source: Source, size: str, at: Item, depth: int = 3) -> str:
    """`size` with the values of its variables. A variable whose value is not seen, such as a parameter of unknown
    meaning, counts as a size in bytes."""
    for name in dict.fromkeys(_WORD.findall(size)):
        set_at = [v for v in source.variables if v.name == name and v.file == at.file and v.line <= at.line and v.value]
        if set_at and depth:
            size += f" {_resolved(source, set_at[-1].value, set_at[-1], depth - 1)}"
        elif source.type_of(name, at.file, at.line)[0] not in ("int", "int32_t") and name not in _BYTES:
            size += " size" if len(name) > 2 and name not in ("size_t", "int64_t") else ""
    return size


def _high_maxima(source: Source) -> Iterator[Finding]:
    """Variables that start above every value and of which the larger one is taken."""
    raised = {(c.file, c.function, name) for c in source.calls if c.name in _MAXIMA for name in c.arguments}
    for variable in source.variables:
        if (variable.file, variable.function, variable.name) in raised and _LARGE.fullmatch(variable.value):
            yield found_at(variable, "maximum_starts_high", _SURE, name=variable.name, start=variable.value)


def _whole_sums(source: Source) -> Iterator[Finding]:
    """Integers to which products of an array's real numbers are added."""
    for sum in source.assignments:
        kind, pointers = source.type_of(sum.name, sum.file, sum.line)
        if sum.operator != "+=" or kind not in _WHOLE or pointers or "*" not in sum.value:
            continue
        arrays = re.findall(r"\b(\w+)\s*\[", sum.value)
        types = [source.type_of(name, sum.file, sum.line)[0].replace("const", "").strip() for name in arrays]
        if types and set(types) <= _REAL:
            made = [v for v in source.variables if v.name == sum.name and v.function == sum.function]
            yield found_at(made[-1] if made else sum, "integer_sum", _SURE, name=sum.name)


def _whole_quotients(source: Source) -> Iterator[Finding]:
    """Quotients of whole numbers that become real numbers, and leave a rest; and 1 over a whole variable."""
    for found in source.quotients:
        left, right = found.left.lstrip("+-"), found.right
        numbers = left.isdecimal() and right.isdecimal() and int(right) > 0
        whole = source.type_of(right, found.file, found.line) in {(word, 0) for word in _WHOLE}
        if found.real and ((numbers and int(left) % int(right)) or (left == "1" and whole)):
            result = int(left) // int(right) if numbers else 0
            yield found_at(found, "integer_division", _SURE, result=result, left=left, right=right)


def _narrow_guards(source: Source) -> Iterator[Finding]:
    """Guards `if (i >= n) return;` before `i / n`, which can only be 0 after them."""
    for branch in source.branches:
        guard = _GUARD.fullmatch(branch.condition)
        function = source.function_at(branch.file, branch.line)
        if guard is None or not branch.leaves or function is None:
            continue
        for found in source.quotients:
            later = function.holds(found.file, found.line) and found.line >= branch.line
            if later and (found.left, found.right) == guard.groups():
                yield found_at(branch, "guard_makes_zero", _SURE, index=guard[1], limit=guard[2])
                break
