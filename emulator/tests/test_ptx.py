"""PTX may be spelled in many ways; what it means does not change, and what is no PTX is refused as such."""

import re
import tempfile
import time
from functools import cache
from pathlib import Path
from random import Random

import pytest

from cudaemu.process import run_plainly as run
from cudaemu.ptx import Imm, Instr, Mem, Module, PtxSyntaxError, Reg, Sym, Vec, parse
from emulator.tests.programs import HERE, nvcc

TOKEN = re.compile(r'"[^"\n]*"|[%\w$.]+(?:::[\w.]+)*|\S')
PROGRAMS = ("control", "memory", "warp")


@cache
def ptx_of(name: str) -> str:
    """What nvcc makes of a conformance program."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.ptx"
        source = HERE / "conformance" / f"{name}.cu"
        flags = ("-ptx", "-O3", "-std=c++17", "--extended-lambda", "-lineinfo", "-arch=sm_80")
        done = run([str(nvcc()), *flags, str(source), "-o", str(output)], Path(folder))
        assert done.exit_code == 0, done.output
        return output.read_text()


def respelled(text: str, random: Random) -> str:
    """The same tokens, with other white space, comments, line breaks and number forms."""
    text = re.sub(r'("[^"\n]*")|//[^\n]*', lambda found: found[1] or "", text)
    tokens = TOKEN.findall(text)
    parts = []
    statement_start, before = True, ""
    directive = False
    for token in tokens:
        if statement_start:
            directive = token[0] == "."
        words = before[-1:].isalnum() or before[-1:] in "_$%"
        next_word = token[0].isalnum() or token[0] in "_$%." or token[0] == '"'
        glued = before.startswith(".") and token[0] == "." and not before[-1:].isdigit()
        needs_space = (
            words and next_word and not (glued and before in (".reg", ".visible", ".global", ".shared", ".param"))
        )
        parts.append(_gap(random, needs_space))
        parts.append(_number(token, random) if not directive and token.isdigit() and before in ",+[" else token)
        statement_start = token in ";{}" or token == ":"
        before = token
    return "".join(parts)


def _gap(random: Random, needed: bool) -> str:
    if random.random() < 0.6:
        return " " if needed else ""
    return random.choice([" ", "\t", "\n", "  \r\n ", "/* a { ; comment */", " // to the end ; }\n", "\n\n", "/**/"])


def _number(token: str, random: Random) -> str:
    value = int(token)
    return random.choice(
        [token, f"{value}U", hex(value), f"0X{value:X}U", f"0{value:o}", f"0b{value:b}", f"({value}+0)"]
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_ptx_spelled_otherwise_is_the_same_program(name: str) -> None:
    text = ptx_of(name)
    expected = parse(text)
    for seed in range(4):
        assert parse(respelled(text, Random(seed))) == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_mistaken_ptx_is_refused_by_name_or_read(name: str) -> None:
    tokens = TOKEN.findall(re.sub(r"//[^\n]*", "", ptx_of(name)))
    refused = 0
    for seed in range(150):
        random = Random(seed)
        start = random.randrange(len(tokens) // 2) if seed % 3 else 0
        some = tokens[start : start + 400]
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(some))
            change = random.randrange(5)
            if change == 0:
                del some[at]
            elif change == 1:
                some.insert(at, random.choice(some))
            elif change == 2:
                some[at] = random.choice('{}[]();:,<>@!+-|=.%"\\~')
            elif change == 3:
                some[at] = some[at][: random.randrange(len(some[at]) + 1)]
            else:
                some[at], some[at - 1] = some[at - 1], some[at]
        try:
            parse(" ".join(some))
        except PtxSyntaxError:
            refused += 1
    assert refused, "no change was a mistake"


HEAD = ".version 9.0 .target sm_80 .address_size 64 "


def kernel(body: str) -> Module:
    return parse(f"{HEAD}.visible .entry k(.param .u64 p){{ {body} ret; }}")


def instructions(body: str) -> list[Instr]:
    return [i for i in kernel(body).functions["k"].body if isinstance(i, Instr)][:-1]


@pytest.mark.parametrize(
    ("text", "value", "width"),
    [("0x1F", 31, 0), ("0X1fU", 31, 0), ("017", 15, 0), ("017U", 15, 0), ("0b101", 5, 0), ("0B11U", 3, 0),
     ("42U", 42, 0), ("-7", -7, 0), ("- 7", -7, 0), ("(1 + 2) * -4", -12, 0), ("~0", -1, 0),
     ("-7 / 2", -3, 0), ("-7 % 4", -3, 0),
     ("1 << 4 | 3", 19, 0), ("0f3F800000", 0x3F800000, 32), ("-0F3f800000", 0xBF800000, 32),
     ("0d3FF0000000000000", 0x3FF0000000000000, 64), ("1.5", 0x3FF8000000000000, 64), ("-.5e1", 0xC014000000000000, 64),
     ("2.", 0x4000000000000000, 64), ("1e3", 0x408F400000000000, 64)],
)  # fmt: skip
def test_literals_in_every_notation(text: str, value: int, width: int) -> None:
    (instr,) = instructions(f".reg.b64 x;mov.b64 x,{text};")
    assert instr.operands[1] == Imm(value, width)


def test_registers_declared_without_blanks_and_several_at_once() -> None:
    registers = kernel(".reg.b32 f,%r<3>,\nx ; .reg\t.pred /* one */ p;").functions["k"].registers
    assert registers == {"f": "b32", "%r0": "b32", "%r1": "b32", "%r2": "b32", "x": "b32", "p": "pred"}


def test_a_wide_register_is_two() -> None:
    body = ".reg .b128 q; .reg .b64 a, b; mov.b128 q, {a, b}; ld.relaxed.gpu.b128 q, [b+16]; mov.b128 {a, b}, q;"
    low, high = Reg("q.low"), Reg("q.high")
    got = [(i.mods, i.operands) for i in instructions(body)]
    assert got == [
        (("b64",), (low, Reg("a"))), (("b64",), (high, Reg("b"))),
        (("relaxed", "gpu", "v2", "b64"), (Vec((low, high)), Mem(Reg("b"), 16))),
        (("b64",), (Reg("a"), low)), (("b64",), (Reg("b"), high)),
    ]  # fmt: skip


def test_predicates_addresses_and_vectors_with_and_without_blanks() -> None:
    body = (
        ".reg .pred p; .reg .b32 a,b; .reg .b64 d; .shared .b8 s[16];"
        "@!p add.s32 a,a,b;@ ! p add.s32 a , a , b;ld.v2.b32{a,b},[d+-8];ld.v2 .b32 { a , b } , [ d + -0x8 ];"
        "ld.shared.b32 a,[s+4];ld.shared.b32 a,[ s + 04 ];ld.shared.b32 a,[16];"
    )
    found = instructions(body)
    assert [i.guard for i in found[:2]] == [Reg("p", negated=True)] * 2
    assert found[0].operands == found[1].operands == (Reg("a"), Reg("a"), Reg("b"))
    assert found[2] == found[3] and found[2].operands == (Vec((Reg("a"), Reg("b"))), Mem(Reg("d"), -8))
    assert found[4].operands == found[5].operands == (Reg("a"), Mem(Sym("s"), 4))
    assert found[6].operands[1] == Mem(Imm(16), 0)


def test_labels_of_nested_brackets_are_their_own() -> None:
    body = ".reg .pred p; { again: @p bra again; bra out; out: } { bra.uni again; again: } again: bra again;"
    targets = [i.operands[0] for i in instructions(body)]
    assert len(set(targets)) == 4 and targets[3] == Sym("again")


def test_directives_stand_anywhere() -> None:
    text = (
        f'{HEAD}.file 1 "a//b.cu",12,34\n.section .debug_str{{ info: .b8 95,90\n }}'
        ".extern.func f(.param.b32 x);.alias g,f;"
        '.visible.entry k()\n.maxntid 128\n,2,1 .minnctapersm 2{.loc 1 5 0\n.pragma"nounroll;";ret;'
        ".loc 1 7 3, function_name info+0, inlined_at 1 9 2 ret;}"
    )
    module = parse(text)
    assert module.functions["k"].max_threads == (128, 2, 1) and module.functions["f"].params[0].name == "x"
    assert [i.loc.line for i in module.functions["k"].body if isinstance(i, Instr)] == [5, 7]


def test_initial_values_of_every_kind() -> None:
    variables = parse(
        f"{HEAD}.global.f32 f[2]={{1.5,0f40000000}};.const .align 8 .b8 c [ 2 ][ 0x3 ] = {{{{1}},{{4,5}}}};"
        ".global .u64 a[3]={f,f+8,generic(c) + 4};.global .b8 parts[]={0xFF(f),0xFF00(f+4),-1};.global .s32 one = -1;"
    ).variables
    assert [(i.offset, i.value) for i in variables["f"].init] == [(0, 0x3FC00000), (4, 0x40000000)]
    assert variables["c"].size == 6 and [(i.offset, i.value) for i in variables["c"].init] == [(0, 1), (3, 4), (4, 5)]
    assert [(i.symbol, i.value) for i in variables["a"].init] == [("f", 0), ("f", 8), ("c", 4)]
    assert [(i.symbol, i.value, i.byte) for i in variables["parts"].init] == [
        ("f", 0, 0),
        ("f", 4, 1),
        (None, 255, None),
    ]
    assert variables["one"].init[0].value == 0xFFFFFFFF and variables["parts"].size == 3


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("/*" * 524_288, "unfinished"),
        ("{.reg .b32 r<1000000>;" * 8 + "}" * 8, "registers"),
        ("{" * 100 + "}" * 100, "deep"),
    ],
)
def test_hostile_text_is_refused_after_a_single_pass(body: str, why: str) -> None:
    began = time.process_time()
    with pytest.raises(PtxSyntaxError, match=why):
        kernel(body)
    assert time.process_time() - began < 20  # some of these took 19 minutes


def test_a_name_is_what_it_was_before_after_the_end_of_its_brackets() -> None:
    function = kernel(".reg .b32 a; mov.b32 a, 1; { .reg .b32 a; mov.b32 a, 2; } mov.b32 a, 3;").functions["k"]
    names = [instr.operands[0] for instr in function.body if isinstance(instr, Instr) and instr.op == "mov"]
    assert names == [Reg("a"), Reg("a.1"), Reg("a")]
