"""Parse PTX operands and numeric literals. The same operands occur many times, so parsed operands are memoised."""

from __future__ import annotations

import ast
import re
import struct
from functools import lru_cache

from cudaemu.ptx.model import Imm, Initial, Mem, Operand, Reg, Sym, Vec


class PtxSyntaxError(Exception):
    """PTX that this parser does not understand; the message quotes the text."""


NAME = r"[A-Za-z_$%][\w$]*"  # an identifier, without the .x, .y or .z of a special register
_NAME = re.compile(r"[A-Za-z_$%][\w$]*(?:\.[\w$]+)*$")
_SIGNED = re.compile(r"([-+]?)\s*([\w.]+(?:[eE][-+]\d+)?)$")
_LITERAL = re.compile(r"0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|0[0-7]*U?|[1-9]\d*U?")
_DECIMAL = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
_EXPRESSION = re.compile(r"[\dA-Fa-fxXU\s()+\-*/%<>&^|~]+$")
_FLOAT_BITS = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")
_ADDRESS = re.compile(rf"({NAME}(?:\.[\w$]+)*)\s*([-+].*)?$", re.S)
_BYTE = re.compile(r"0xFF(0*)\s*\((.*)\)$", re.S | re.I)
_GENERIC = re.compile(r"generic\s*\((.*)\)\s*([-+].*)?$", re.S)


def split(text: str) -> list[str]:
    """Split a text at the commas that are outside brackets."""
    if not text.strip():
        return []
    if "{" not in text and "[" not in text and "(" not in text:
        return text.split(",")
    parts: list[str] = []
    depth = start = 0
    for i, c in enumerate(text):
        if c in "{[(":
            depth += 1
        elif c in "}])":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts


@lru_cache(maxsize=65536)
def operand(text: str) -> Operand:
    text = text.strip()
    if not text:
        raise PtxSyntaxError("an empty operand")
    first = text[0]
    if text == "_" or (first == "%" and _NAME.match(text)):  # _ stands for an unused result
        return Reg(text)
    if first == "{":
        return Vec(tuple(operand(part) for part in split(_inside(text, "}"))))
    if first == "[":
        return _memory(_inside(text, "]"))
    if first == "!":
        negated = operand(text[1:])
        if not isinstance(negated, Reg | Sym) or (isinstance(negated, Sym) and negated.offset):
            raise PtxSyntaxError(f"operand {text!r}")
        return Reg(negated.name, negated=True)
    value = number(text)
    if value is not None:
        return value
    base, offset = _base_and_offset(text)
    if isinstance(base, Sym):
        return Sym(base.name, offset)
    raise PtxSyntaxError(f"operand {text!r}")


def number(text: str) -> Imm | None:
    """Parse a literal or a constant expression; None if the text is neither."""
    text = text.strip()
    if not text or not (text[0].isdigit() or text[0] in "+-.(~"):
        return None
    found = _SIGNED.match(text)
    sign, digits = (-1 if found[1] == "-" else 1, found[2]) if found else (1, text)
    if _LITERAL.fullmatch(digits):
        return Imm(sign * _integer(digits))
    if _FLOAT_BITS.fullmatch(digits):
        width = 32 if digits[1] in "fF" else 64
        return Imm(int(digits[2:], 16) ^ ((sign < 0) << width - 1), width)
    if _DECIMAL.fullmatch(digits):
        return Imm(struct.unpack("<Q", struct.pack("<d", sign * float(digits)))[0], 64)
    return _expression(text) if _EXPRESSION.match(text) else None


def integer(text: str) -> int:
    value = number(text)
    if value is None or value.width:
        raise PtxSyntaxError(f"number {text!r}")
    return value.value


def initial(text: str, kind: str, size: int, dims: list[int]) -> tuple[Initial, ...]:
    """The initial values of an array of dimensions `dims` with elements of `size` bytes. A first dimension of 0
    stands for [], an array as long as its initial values."""
    found: list[Initial] = []
    text = text.strip()
    if text.startswith("{") and not dims:
        raise PtxSyntaxError(f"initial value {text[:120]!r}")
    _initial(text, kind, size, dims, 0, found)
    return tuple(found)


def _initial(text: str, kind: str, size: int, dims: list[int], offset: int, found: list[Initial]) -> int:
    """Append initial values to `found` and return the offset after the last one."""
    text = text.strip()
    if not text.startswith("{"):
        found.append(_element(text, kind, size, offset))
        return offset + size
    step = size
    for dim in dims[1:]:
        step *= dim
    start = offset
    for part in split(_inside(text, "}")):
        nested = part.strip().startswith("{")
        if nested:
            start += -(start - offset) % step
            _initial(part, kind, size, dims[1:], start, found)
            start += step
        elif part.strip():
            start = _initial(part, kind, size, dims, start, found)
    return start


def _element(text: str, kind: str, size: int, offset: int) -> Initial:
    value = number(text)
    if value is not None:
        bits = value.value
        if kind in ("f32", "f64"):
            bits = _float_bits(value, 32 if kind == "f32" else 64)
        return Initial(offset, size, bits & ((1 << 8 * size) - 1))
    byte = None
    masked = _BYTE.match(text)
    if masked:
        byte, text = len(masked[1]) // 2, masked[2].strip()
    generic = _GENERIC.match(text)
    if generic:
        text = f"{generic[1].strip()} {generic[2] or ''}"
    base, more = _base_and_offset(text.strip())
    if not isinstance(base, Sym):
        raise PtxSyntaxError(f"initial value {text[:120]!r}")
    return Initial(offset, size, more, base.name, byte)


def _float_bits(value: Imm, width: int) -> int:
    if value.width == width:
        return value.value
    given = float(value.value)
    if value.width:
        given = struct.unpack("<d" if value.width == 64 else "<f", value.value.to_bytes(value.width // 8, "little"))[0]
    try:
        return int.from_bytes(struct.pack("<f" if width == 32 else "<d", given), "little")
    except OverflowError as error:
        raise PtxSyntaxError(f"the number {given}, too large for an f{width}") from error


def _inside(text: str, closing: str) -> str:
    if text[-1] != closing:
        raise PtxSyntaxError(f"operand {text[:120]!r}, which has no {closing}")
    return text[1:-1]


def _memory(text: str) -> Mem | Vec:
    text = text.strip()
    if "," in text:  # [a, {x, y}] of textures and bulk copies
        return Vec(tuple(operand(part) for part in split(text)))
    value = number(text)
    if value is not None:
        return Mem(value, 0)
    base, offset = _base_and_offset(text)
    return Mem(base, offset)


def _base_and_offset(text: str) -> tuple[Reg | Sym, int]:
    match = _ADDRESS.match(text)
    if not match:
        raise PtxSyntaxError(f"operand {text[:120]!r}")
    name, more = match.groups()
    offset = 0
    if more:
        more = more.strip()
        inner = more[1:].strip() if more[0] == "+" else more  # [%r + -4]
        offset = integer(inner)
    return (Reg(name) if name[0] == "%" else Sym(name)), offset


def _integer(text: str) -> int:
    text = text.rstrip("U")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return int(text, 8)
    return int(text, 0)


def _expression(text: str) -> Imm | None:
    """Evaluate a constant expression of integers as C would in 64 bits."""
    try:
        tree = ast.parse(_LITERAL.sub(lambda found: str(_integer(found[0])), text.strip()), mode="eval")
        return Imm(_evaluate(tree.body))
    except (SyntaxError, ValueError, ArithmeticError, MemoryError, RecursionError):
        return None


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp):
        a = _evaluate(node.operand)
        if not isinstance(node.op, ast.Not):
            return {ast.USub: -a, ast.UAdd: a, ast.Invert: ~a}[type(node.op)]
    if isinstance(node, ast.BinOp):
        a, b = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.LShift | ast.RShift):
            if not 0 <= b < 64:
                raise ValueError("shift")
            return a << b if isinstance(node.op, ast.LShift) else a >> b
        simple = {
            ast.Add: a + b,
            ast.Sub: a - b,
            ast.Mult: a * b,
            ast.BitAnd: a & b,
            ast.BitOr: a | b,
            ast.BitXor: a ^ b,
        }
        if type(node.op) in simple:
            return simple[type(node.op)]
        if isinstance(node.op, ast.Div | ast.Mod):
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if isinstance(node.op, ast.Div) else a - b * quotient
    raise ValueError(f"{type(node).__name__} in a constant expression")
