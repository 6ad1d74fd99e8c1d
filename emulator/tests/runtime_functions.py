"""Every function of the runtime's headers as a test in C, so that instruction sets and forms can be compared.

The list of functions is read from the preprocessed headers: those of plain values are called by C written here, the
others by hand in runtime_functions.h. One that is in neither is reported, so that a new one is not left out.
"""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cudaemu.isa import RUNTIME, host_compiler, instruction_set
from cudaemu.native import KERNEL_FLAGS, TEMPLATE_LEVEL
from emulator.tests.programs import runner, toolkit_headers

HERE = Path(__file__).parent
BY_HAND = HERE / "runtime_functions.h"
HEADERS = ("vectors.h", "warp.h", "math.h.inc", "access.h.inc", "lanes.h.inc")

VECTORS = {"VU": "u32", "VI": "i32", "VF": "float", "VQ": "u64", "VL": "i64", "VD": "double"}
WIDE = {"u64", "i64", "double"}
SCALARS = {"u32", "i32", "float", "u64", "i64", "double"}
LEFT_OUT = {
    **dict.fromkeys(("BU", "BI", "BF", "BQ", "BL", "BD", "f2u", "u2f", "d2q", "q2d"), "a change of type"),
    **dict.fromkeys(
        ("mask16", "mask8", "expand_mask", "expand_maskq", "movemask", "movemaskq", "expand_half"),
        "a part of CMP or SEL",
    ),
    **dict.fromkeys(("COMPARE", "COMPAREF"), "a part of CMP"),
    **{f"{word}{letter}": "CMP or SEL, or called by it" for word in ("WHERE", "PICK") for letter in "UIQLFD"},
    **dict.fromkeys(
        ("sh_span", "g_span", "local_row", "lanes_exit", "see_together"),
        "one form for all; conformance programs run it",
    ),
    **dict.fromkeys(
        (
            *("spread_u32", "spread_u64", "fill_row", "bits_row", "narrow_row", "pending_counts", "fns_row", "lane64"),
            *(f"lanes_in_{space}" for space in ("shared", "local", "param", "const", "global")),
            *(f"carry_{how}_{t}_row" for how in ("add", "sub", "mad_lo", "mad_hi") for t in ("u32", "u64")),
        ),
        "a loop over lanes, the same for all",
    ),
    **dict.fromkeys(
        (
            *("sh_lanes", "g_lanes", "store_part", "take_local", "check_members", "check_member_rows", "sync_warp"),
            *("named_by", "choose_blocks", "next_due", "wait_at", "wait_together"),
            *("call_vprintf", "call_assertfail", "call_malloc", "call_free", "call_pointers"),
        ),
        "works on a warp; conformance programs run it",
    ),
    **dict.fromkeys(("clamp_field_s", "clamp_field_v"), "of low <= high only; conformance programs run it"),
    **dict.fromkeys(("is_shared", "is_local", "is_param", "is_const", "is_global"), "one form for all, of addresses"),
    **dict.fromkeys(("REP", "REPQ", "IOTA_", "IOTAQ_", "RNDSCALE", "RNDSCALED"), "a part of others"),
    **dict.fromkeys(
        (
            "RANGE",
            "ROUNDED",
            "ROUNDED_VECTORS",
            "UNDER_MODE",
            "WORD",
            "FMA_MODE",
            "SLOTS",
            "FMA_HALVES",
            "ROUND_LANES",
            "TO_INTEGER_V",
        ),
        "writes others",
    ),
    **dict.fromkeys(
        (
            "round_half",
            "byte_difference",
            "half_how",
            "half_how_v",
            "fma_odd",
            "fma_odd_v",
            "every_fourth",
            "round_to",
            "HOLD",
            "abs_i_vi",
            "abs_i_vl",
        ),
        "called by the others",
    ),
}
"""Functions that are not called by a test of their own, and why."""
_FUNCTION = re.compile(
    r"static inline __attribute__\s*\(\(\s*always_inline,\s*unused\s*\)\)\s+(\w+)\s+\**(\w+)\s*\(([^()]*)\)\s*\{"
)
_CONDITIONAL = re.compile(r"^#(if\w*|else|elif|endif)\b|^#define (\w+)\(", re.M)


@dataclass(frozen=True)
class Function:
    """A function of the headers: types of the result and the parameters, names of the parameters."""

    name: str
    result: str
    types: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def is_of_values(self) -> bool:
        known = {*VECTORS, *SCALARS, "int"}
        return self.result in known and set(self.types) <= known

    @property
    def base(self) -> str:
        """The operation, the same for its scalar and its vector form."""
        return re.sub(r"_(s|v|lo|hi)$", "", self.name)


def compiler(*more: str) -> list[str]:
    """The command that compiles kernels here, with a kernel's includes."""
    flags = (*KERNEL_FLAGS, *instruction_set().flags, f"-I{RUNTIME}", f"-I{HERE}", "-isystem", str(toolkit_headers()))
    return [host_compiler(), *flags, *more]


def functions() -> list[Function]:
    """All functions of the headers, as they are for the current instruction set."""
    command = compiler("-E", "-P", "-x", "c", str(RUNTIME / "warp.h"))
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return list(_read(text))


def _read(text: str) -> Iterator[Function]:
    for result, name, parameters in _FUNCTION.findall(text):
        words = [re.match(r"(.*?)(\w+)$", part.strip()) for part in parameters.split(",")]
        pairs = [(word[1].strip(), word[2]) for word in words if word]
        yield Function(name, result, tuple(t for t, _ in pairs), tuple(n for _, n in pairs))


def macros_by_instruction_set() -> set[str]:
    """Macros with parameters that the headers define under an #if: they have a form for each instruction set."""
    found: set[str] = set()
    for header in HEADERS:
        depth = -header.endswith(".h")  # the include guard
        for word, macro in _CONDITIONAL.findall((RUNTIME / header).read_text()):
            depth += {"endif": -1, "else": 0, "elif": 0, "": 0}.get(word, 1)
            if macro and depth > 0:
                found.add(macro)
    return found


def program(folder: Path) -> Path:
    """An executable that prints a line for every test: its name, its base, the hash of its results."""
    tests = dict(_tests(functions()))
    lines = ['#include "runtime_functions.h"', *tests.values()]
    lines.append("static const struct test tests[] = { TESTS_BY_HAND")
    lines += [f"    {{{_entry(f)}, {f.name}_rows}}," for f in functions() if f.name in tests]
    lines += ["};", "static const size_t test_count = LENGTH(tests);"]
    name = instruction_set().name
    source, made = folder / f"{name}.c", folder / name
    source.write_text("\n".join(lines) + "\n")
    sources = [str(source), *(str(RUNTIME / part) for part in ("fused.c", "rounding.c"))]
    command = compiler(TEMPLATE_LEVEL, *sources, "-o", str(made), "-lm")
    subprocess.run(command, check=True, capture_output=True, text=True)
    return made


def results(made: Path, *words: str) -> str:
    """What the program prints."""
    return subprocess.run([*runner(), str(made), *words], check=True, capture_output=True, text=True).stdout


def hashes(folder: Path) -> dict[str, str]:
    """What all functions give here: name and operation, then the hash of the results."""
    return dict(line.rsplit(maxsplit=1) for line in results(program(folder)).splitlines())


def forgotten() -> list[str]:
    """Functions, and macros with a form for each instruction set, that no test calls."""
    all_, by_hand = functions(), BY_HAND.read_text()
    tested = {*dict(_tests(all_)), *LEFT_OUT, *re.findall(r"\b\w+\b", by_hand)}
    names = {re.sub(r"_hi$", "_lo", f.name) for f in all_} | macros_by_instruction_set()
    return sorted(names - tested)


def _element(type_: str) -> str:
    return VECTORS.get(type_, {"int": "u32"}.get(type_, type_))


def _operands(f: Function) -> list[str]:
    """Element types of the operands. Two pieces of 64 bits that make one of 32 are one operand."""
    elements = [_element(t) for t in f.types]
    if f.result in VECTORS and _element(f.result) not in WIDE:
        elements = [e for i, e in enumerate(elements) if not (f.types[i] in VECTORS and e in WIDE and i % 2)]
    if half := re.match(r"fma_(f16|bf16)_", f.name):  # halves, widened
        return [half[1]] * 3 + elements[3:]
    if narrow := re.search(r"_([us])16_[svu]$", f.name):
        return ["u16" if narrow[1] == "u" else "i16"] * len(elements)
    return elements


def _entry(f: Function) -> str:
    operands = _operands(f)
    types = ", ".join(f"TYPE_{o}" for o in operands)
    result = operands[0] if operands[0] in ("u16", "i16") else _element(f.result)
    return f'"{f.name}", "{f.base}({types})", {len(operands)}, {{{types}}}, TYPE_{result}'


def _tests(all_: list[Function]) -> Iterator[tuple[str, str]]:
    """(name, C function) for each function of plain values; `_lo` and `_hi` are one test."""
    by_hand = set(re.findall(r"\b\w+\b", BY_HAND.read_text()))
    for f in all_:
        if f.is_of_values and f.name not in by_hand | LEFT_OUT.keys() and not f.name.endswith("_hi"):
            yield f.name, f"static void {f.name}_rows(const union row *in, union row *out) {{ {_body(f)} }}"


def _body(f: Function) -> str:
    operands = _operands(f)
    vectors = [t for t in f.types if t in VECTORS]
    if not vectors:
        arguments = [_scalar(f, k, "l") for k in range(len(operands))]
        return f"for (int l = 0; l < 32; l++) {_place(f.result)}[l] = {f.name}({', '.join(arguments)});"
    wide_in, wide_out = _element(vectors[0]) in WIDE, _element(f.result) in WIDE
    if wide_in and not wide_out:  # two pieces of 64 bits give one of 32
        call = f"{f.name}(LOAD({vectors[0]}, in[0], 2 * i), LOAD({vectors[0]}, in[0], 2 * i + 1))"
        return f"for (int i = 0; i < PIECES; i++) STORE(out, i, {call});"
    arguments = [f"LOAD({t}, in[{k}], i)" if t in VECTORS else _scalar(f, k, "0") for k, t in enumerate(f.types)]
    words = ", ".join(arguments)
    if wide_out and not wide_in:
        high = re.sub(r"_lo$", "_hi", f.name)
        both = f"STORE(out, 2 * i, {f.name}({words})); STORE(out, 2 * i + 1, {high}({words}));"
        return f"for (int i = 0; i < PIECES; i++) {{ {both} }}"
    pieces = "2 * PIECES" if wide_in else "PIECES"
    return f"for (int i = 0; i < {pieces}; i++) STORE(out, i, {f.name}({words}));"


def _place(type_: str) -> str:
    return "out->" + {"u64": "q", "i64": "l", "int": "i"}.get(type_, type_[0])


def _scalar(f: Function, k: int, lane: str) -> str:
    place = _place(f.types[k]).replace("out->", f"in[{k}].")
    return f"{place}[0] & 3" if f.parameters[k] == "how" else f"{place}[{lane}]"
