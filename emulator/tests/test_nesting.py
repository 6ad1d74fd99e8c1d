"""Loops inside one another: what the emulator translates, and what it refuses in a sentence."""

import time

from cudaemu.ptx import parse
from cudaemu.translate import translate_module


def nested(depth: int, *, beside: int = 1) -> str:
    """A kernel with `beside` nests of `depth` loops."""
    lines = []
    for nest in range(beside):
        for level in range(depth):
            lines += [f"L{nest}_{level}:", f"add.s32 %r{level}, %r{level}, 1;"]
        for level in reversed(range(depth)):
            lines += [f"setp.lt.s32 %p1, %r{level}, 4;", f"@%p1 bra L{nest}_{level};"]
    body = "\n".join(lines)
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n"
        f"{{ .reg .pred %p<2>; .reg .b32 %r<{depth + 1}>;\n.loc 1 7 0\n{body}\nret; }}\n"
    )


def test_a_hundred_nested_loops_are_translated() -> None:
    _, findings = translate_module(parse(nested(100)), prefix="m0", lanes=8)
    assert findings == []


def test_very_many_nested_loops_are_refused_at_once() -> None:
    """1,500 took 39 s, and ended in a RecursionError."""
    for depth in (201, 1500, 20_000):
        module = parse(nested(depth))
        began = time.process_time()
        _, [finding] = translate_module(module, prefix="m0", lanes=8)
        assert time.process_time() - began < 5
        what = "200 loops inside one another" if depth <= 2000 else "2,000 loops"
        assert finding.what == f"a function with more than {what}" and finding.line == 7


def test_loops_beside_one_another_are_no_nest() -> None:
    _, findings = translate_module(parse(nested(2, beside=300)), prefix="m0", lanes=8)
    assert findings == []
