"""A PTX parser for what nvcc and inline assembly write.

nvcc puts one statement on a line, so the parser goes line by line: `.loc` and other line directives first, then
text is gathered up to a semicolon and matched as one statement. Operand texts repeat a great deal; parsing them is
memoised, which is what makes a 5000-instruction kernel parse in well under 0.2 s.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from grader.emulator.ptx.model import (
    UNKNOWN,
    Function,
    Imm,
    Initial,
    Instr,
    Label,
    Loc,
    Mem,
    Module,
    Operand,
    Param,
    Reg,
    Sym,
    Variable,
    Vec,
)

TYPE_BYTES = {
    "pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4,
    "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
}  # fmt: skip

_SPACES = ("global", "const", "shared", "local", "param")


class PtxSyntaxError(Exception):
    """PTX that this parser does not understand; the message holds the text."""


_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?\*/', re.S)  # or a string, which may hold a path with //
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)\s*")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)")
_INLINED = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
_INSTR = re.compile(r"(?:@(!?)\s*([%\w$.]+)\s+)?([a-z][\w.]*(?:::\w+[\w.]*)*)\s*(.*)$", re.S)
_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+U?|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+U?)$")
_VARIABLE = re.compile(
    r"(?P<flags>(?:\.\w+(?:\([^)]*\)|\s+\d+)?\s+)*?)\.(?P<type>[a-z]\w*)\s+"
    r"(?P<name>[\w$%]+)(?P<dims>(?:\[\s*\d*\s*\])*)\s*(?:=\s*(?P<init>.*))?$",
    re.S,
)


def parse(text: str, *, first_file: int = 0) -> Module:
    """Parses one PTX module, with `first_file` added to its file numbers. Raises `PtxSyntaxError`."""
    try:
        return _Parser(text, first_file).module
    except (
        LookupError,
        ValueError,
        ArithmeticError,
        TypeError,
        AttributeError,
        AssertionError,
        RecursionError,
    ) as error:
        # Inline assembly puts any text into PTX: half a statement must not end the grader.
        raise PtxSyntaxError(f"a statement that is not whole ({type(error).__name__})") from error


def link_modules(modules: list[Module]) -> Module:
    """One module of several that were compiled to be linked: definitions take the place of declarations."""
    result = Module(modules[0].version, modules[0].target)
    for module in modules:
        result.files.update(module.files)
        for name, function in module.functions.items():
            if name not in result.functions or (function.defined and not result.functions[name].defined):
                result.functions[name] = function
        for name, variable in module.variables.items():
            if name not in result.variables or result.variables[name].linkage == "extern":
                result.variables[name] = variable
    return result


@lru_cache(maxsize=65536)
def _operand(text: str) -> Operand:
    text = text.strip()
    if not text:
        raise PtxSyntaxError("an empty operand")
    first = text[0]
    if first == "{":
        return Vec(tuple(_operand(part) for part in _split(text[1:-1])))
    if first == "[":
        return _memory(text[1:-1])
    if first == "!":
        return Reg(text[1:].strip(), negated=True)
    if _NUMBER.match(text):
        return _number(text)
    if first == "%":
        return Reg(text)
    if first == "-" and text[1:].strip().startswith("%"):
        raise PtxSyntaxError(f"operand {text!r}")
    match = re.match(r"([\w$.%]+)\s*(?:([+-])\s*(\d+|0x[0-9a-fA-F]+))?$", text)
    if not match:
        raise PtxSyntaxError(f"operand {text!r}")
    offset = int(match[3], 0) if match[3] else 0
    return Sym(match[1], -offset if match[2] == "-" else offset)


def _number(text: str) -> Imm:
    sign = -1 if text[0] == "-" else 1
    text = text.lstrip("+-")
    if text[:2] in ("0f", "0F") and len(text) == 10:
        bits = int(text[2:], 16)
        return Imm(bits ^ (0x80000000 if sign < 0 else 0), 32)
    if text[:2] in ("0d", "0D") and len(text) == 18:
        bits = int(text[2:], 16)
        return Imm(bits ^ (1 << 63 if sign < 0 else 0), 64)
    text = text.rstrip("U")
    if text.startswith("0") and len(text) > 1 and text[1] not in "xX":
        return Imm(sign * int(text, 8))
    return Imm(sign * int(text, 0))


def _memory(text: str) -> Mem | Vec:
    text = text.strip()
    if "," in text:  # [a, {x, y}] of textures and bulk copies; refused later by name
        return Vec(tuple(_operand(part) for part in _split(text)))
    match = re.match(r"([%\w$.]+)\s*(?:\+\s*(-?\w+)|(-\s*\w+))?$", text)
    if not match:
        raise PtxSyntaxError(f"address {text!r}")
    offset = int((match[2] or match[3] or "0").replace(" ", ""), 0)
    base = _operand(match[1])
    if isinstance(base, Mem | Vec):
        raise PtxSyntaxError(f"address {text!r}")
    return Mem(base, offset)


def _split(text: str) -> list[str]:
    """Splits at commas that are outside brackets."""
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


class _Parser:
    def __init__(self, text: str, first_file: int) -> None:
        self.first_file = first_file
        self.module = Module("", "")
        self.function: Function | None = None
        self.loc = UNKNOWN
        self.scopes: list[dict[str, str]] = []  # register and variable renamings of nested { }
        self.scope_count = 0
        self.rename: dict[str, str] = {}
        text = _COMMENT.sub(lambda found: found[1] or "", text)
        for found in _FILE.finditer(text):  # nvcc writes them last, but lines need them
            self.module.files[int(found[1]) + first_file] = os.path.normpath(found[2])
        self._run(text)

    # ---- statements -------------------------------------------------------------------------------------------

    def _run(self, text: str) -> None:
        lines = text.split("\n")
        buffer = ""
        skip_section = False
        for raw in lines:
            line = raw.strip()
            if not line:
                continue
            if skip_section:
                skip_section = not line.startswith("}")
                continue
            if not buffer:
                if line.startswith((".loc ", ".loc\t")):
                    self._loc(line)
                    continue
                if line.startswith(".section"):
                    skip_section = "}" not in line
                    continue
                if line.startswith((".version", ".target", ".address_size", ".file", ".pragma")):
                    self._directive(line)
                    continue
            buffer = f"{buffer} {line}" if buffer else line
            buffer = self._consume(buffer)
        if buffer.strip():
            raise PtxSyntaxError(f"unfinished statement {buffer.strip()[:120]!r}")

    def _consume(self, text: str) -> str:
        """Takes whole statements off the front of `text`; returns what is still incomplete."""
        while text:
            text = text.lstrip()
            if not text:
                break
            if text[0] == "}":
                self._close()
                text = text[1:]
                continue
            if text[0] == "{":
                self._open()
                text = text[1:]
                continue
            if self.function is None and re.match(r"(\.(visible|extern|weak|common)\s+)?\.(entry|func)\b", text):
                brace, semicolon = text.find("{"), text.find(";")
                if brace >= 0 and (semicolon < 0 or brace < semicolon):
                    self._header(text[:brace], defined=True)
                    text = text[brace + 1 :]
                    continue
                if semicolon >= 0:
                    self._header(text[:semicolon], defined=False)
                    text = text[semicolon + 1 :]
                    continue
                return text
            if self.function is not None:
                match = _LABEL.match(text)
                if match:
                    rest = text[match.end() :]
                    if not rest and not text.endswith(":"):
                        return text
                    if rest.startswith((".branchtargets", ".callprototype", ".calltargets")):
                        if ";" not in rest:
                            return text
                        statement, text = rest.split(";", 1)
                        self._label_directive(match[1], statement)
                        continue
                    self.function.body.append(Label(self._label(match[1])))
                    text = rest
                    continue
            end = text.find(";")
            if end < 0:
                return text
            statement, text = text[:end].strip(), text[end + 1 :]
            if statement:
                self._statement(statement)
        return ""

    def _loc(self, line: str) -> None:
        match = _LOC.match(line)
        if not match:
            return
        if int(match[2]) == 0:  # nvcc marks compiler-made code as line 0: keep the last real line
            return
        inlined = _INLINED.search(line)
        file, number = int(match[1]) + self.first_file, int(match[2])
        if inlined and not self._own(file) and self._own(int(inlined[1]) + self.first_file):
            file, number = int(inlined[1]) + self.first_file, int(inlined[2])
        elif not self._own(file) and self.loc.line:  # a header's line: the student's own is more help
            return
        self.loc = Loc(file, number)

    def _own(self, file: int) -> bool:
        path = self.module.files.get(file)
        return path is None or not re.search(r"/(cuda[^/]*|nvidia|nvvm)/.*include/|^/usr/(lib|include)/", path)

    def _directive(self, line: str) -> None:
        words = line.rstrip(";").split()
        if words[0] == ".version":
            self.module.version = words[1]
        elif words[0] == ".target":
            self.module.target = words[1].rstrip(",")

    def _open(self) -> None:
        self.scopes.append(self.rename)
        self.rename = dict(self.rename)
        self.scope_count += 1

    def _close(self) -> None:
        if self.scopes:
            self.rename = self.scopes.pop()
            return
        self.function = None
        self.rename = {}
        self.loc = UNKNOWN

    def _label(self, name: str) -> str:
        return self.rename.get(name, name)

    # ---- declarations -----------------------------------------------------------------------------------------

    def _header(self, text: str, *, defined: bool) -> None:
        match = re.match(
            r"(?:\.(visible|extern|weak)\s+)?\.(entry|func)\s*(?:\(([^()]*)\))?\s*([\w$]+)\s*(?:\((.*?)\))?\s*(.*)$",
            text.strip(),
            re.S,
        )
        if not match:
            raise PtxSyntaxError(f"function header {text[:120]!r}")
        linkage, kind, returns, name, params, attributes = match.groups()
        function = Function(
            name,
            kind == "entry",
            self._params(params),
            self._params(returns),
            defined,
            linkage or "",
            loc=self.loc,
        )
        for directive, field_name in (("maxntid", "max_threads"), ("reqntid", "required_threads")):
            found = re.search(rf"\.{directive}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", attributes)
            if found:
                setattr(function, field_name, tuple(int(found[i] or 1) for i in (1, 2, 3)))
        known = self.module.functions.get(name)
        if known is None or not known.defined:
            self.module.functions[name] = function
        if defined:
            self.function = function
            self.scopes = []
            self.rename = {}

    def _params(self, text: str | None) -> tuple[Param, ...]:
        params = []
        for part in _split(text or ""):
            match = re.match(
                r"\.(?:param|reg)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s*(?:\.ptr[^_%]*?)?\s+(?:\.ptr\s*)?"
                r"(?:\.(?:global|const|local|shared)\s+)?(?:\.align\s+\d+\s+)?([\w$%]+)(?:\[(\d*)\])?",
                part.strip(),
            )
            if not match:
                raise PtxSyntaxError(f"parameter {part.strip()!r}")
            size = TYPE_BYTES[match[2]]
            count = int(match[4]) if match[4] else 1
            params.append(Param(match[3], match[2], size * count, int(match[1] or size)))
        return tuple(params)

    def _label_directive(self, label: str, statement: str) -> None:
        assert self.function is not None
        if statement.startswith(".callprototype"):
            match = re.match(r"\.callprototype\s*(?:\(([^()]*)\))?\s*_\s*(?:\((.*?)\))?", statement, re.S)
            if match:
                self.function.prototypes[label] = (self._params(match[2]), self._params(match[1]))
            return
        names = statement.split(None, 1)[1]
        self.function.branch_targets[label] = tuple(self._label(n.strip()) for n in names.split(","))

    def _statement(self, text: str) -> None:
        if text[0] == ".":
            if text.startswith(".reg"):
                self._registers(text)
            elif text.startswith((".pragma", ".alias", ".maxnreg", ".minnctapersm", ".noreturn")):
                return
            else:
                self._variable(text)
            return
        self._instruction(text)

    def _registers(self, text: str) -> None:
        assert self.function is not None
        words = text.split(None, 2)
        kind = words[1].lstrip(".")
        if kind in ("v2", "v4"):
            raise PtxSyntaxError(f"vector register declaration {text!r}")
        for name in words[2].split(","):
            name = name.strip()
            match = re.match(r"([\w$%]+)<(\d+)>$", name)
            if match:
                for i in range(int(match[2])):
                    self.function.registers[f"{match[1]}{i}"] = kind
                continue
            unique = name
            if self.scopes:  # a { } of inline assembly or of a call: its names are its own
                unique = f"{name}.{self.scope_count}"
                self.rename[name] = unique
            self.function.registers[unique] = kind

    def _variable(self, text: str) -> None:
        match = _VARIABLE.match(text)
        if not match:
            raise PtxSyntaxError(f"declaration {text[:120]!r}")
        flags, kind, name = match["flags"], match["type"], match["name"]
        words = re.findall(r"\.(\w+)", flags)
        space = next((w for w in words if w in _SPACES), "")
        if not space or kind not in TYPE_BYTES:
            raise PtxSyntaxError(f"declaration {text[:120]!r}")
        element = TYPE_BYTES[kind]
        align = re.search(r"\.align\s+(\d+)", flags)
        dims = re.findall(r"\[\s*(\d*)\s*\]", match["dims"])
        init = self._initial(match["init"], element) if match["init"] else ()
        count = 1
        for dim in dims:
            count *= int(dim) if dim else 0
        if dims and dims[0] == "" and init:
            count = (init[-1].offset + init[-1].size) // element
        linkage = next((w for w in words if w in ("visible", "extern", "weak", "common")), "")
        variable = Variable(
            name, space, kind, element * count, int(align[1]) if align else element, linkage,
            ".managed" in flags, init,
        )  # fmt: skip
        if self.function is None:
            known = self.module.variables.get(name)
            if known is None or known.linkage == "extern":
                self.module.variables[name] = variable
            return
        if self.scopes:
            unique = f"{name}.{self.scope_count}"
            self.rename[name] = unique
            variable = Variable(unique, space, kind, variable.size, variable.align, linkage, False, init)
        self.function.variables.append(variable)

    def _initial(self, text: str, element: int) -> tuple[Initial, ...]:
        text = text.strip()
        if text.startswith("{"):
            text = text.replace("{", "").replace("}", "")
        result = []
        for i, part in enumerate(text.split(",")):
            part = part.strip()
            if not part:
                continue
            offset = i * element
            if _NUMBER.match(part):
                result.append(Initial(offset, element, _number(part).value & ((1 << 8 * element) - 1)))
                continue
            byte = None
            masked = re.match(r"(0xFF0*)\((.*)\)$", part)
            if masked:
                byte, part = (len(masked[1]) - 4) // 2, masked[2]
            generic = re.match(r"generic\((.*)\)$", part.strip())
            if generic:
                part = generic[1]
            found = re.match(r"\s*(?:generic\()?([\w$]+)\)?\s*(?:\+\s*(\d+))?\s*$", part)
            if not found:
                raise PtxSyntaxError(f"initial value {part!r}")
            result.append(Initial(offset, element, int(found[2] or 0), found[1], byte))
        return tuple(result)

    # ---- instructions -----------------------------------------------------------------------------------------

    def _instruction(self, text: str) -> None:
        function = self.function
        if function is None:
            raise PtxSyntaxError(f"instruction outside a function: {text[:120]!r}")
        match = _INSTR.match(text)
        if not match:
            raise PtxSyntaxError(f"instruction {text[:120]!r}")
        negated, guard_name, name, rest = match.groups()
        words = name.replace("::", "__").split(".")
        guard = Reg(self.rename.get(guard_name, guard_name), negated == "!") if guard_name else None
        if words[0] == "call":
            function.body.append(self._call(words, rest, guard))
            return
        if "|" in rest:  # shfl.sync d|p, … : two results
            rest = rest.replace("|", ",", 1)
            words.append("with_pred")
        operands = tuple(self._renamed(_operand(part)) for part in _split(rest))
        if "L2__cache_hint" in words:  # the last operand is the policy, which changes no result
            operands = operands[:-1]
        targets: tuple[str, ...] = ()
        if words[0] == "brx":
            last = operands[-1]
            assert isinstance(last, Sym)
            targets = function.branch_targets.get(last.name, ())
        function.body.append(Instr(words[0], tuple(words[1:]), operands, guard, self.loc, targets=targets))

    def _call(self, words: list[str], rest: str, guard: Reg | None) -> Instr:
        match = re.match(
            r"(?:\(([^)]*)\)\s*,\s*)?([\w$%.]+)\s*(?:,\s*\(([^)]*)\))?\s*(?:,\s*([\w$]+))?\s*$", rest, re.S
        )
        if not match:
            raise PtxSyntaxError(f"call {rest[:120]!r}")
        returns = tuple(self._renamed(_operand(p)) for p in _split(match[1] or ""))
        arguments = tuple(self._renamed(_operand(p)) for p in _split(match[3] or ""))
        callee = self._renamed(_operand(match[2]))
        targets = (match[4],) if match[4] else ()
        return Instr("call", tuple(words[1:]), arguments, guard, self.loc, returns, callee, targets)

    def _renamed(self, operand: Operand) -> Operand:
        if not self.rename:
            return self._typed(operand)
        if isinstance(operand, Reg):
            name = self.rename.get(operand.name)
            return Reg(name, operand.negated) if name else operand
        if isinstance(operand, Sym):
            name = self.rename.get(operand.name, operand.name)
            return self._typed(Sym(name, operand.offset))
        if isinstance(operand, Mem):
            base = self._renamed(operand.base)
            assert not isinstance(base, Mem | Vec)
            return Mem(base, operand.offset)
        if isinstance(operand, Vec):
            return Vec(tuple(self._renamed(item) for item in operand.items))
        return operand

    def _typed(self, operand: Operand) -> Operand:
        """Registers of inline assembly need no %: a symbol that names one becomes a register."""
        assert self.function is not None
        registers = self.function.registers
        if isinstance(operand, Sym) and operand.name in registers:
            return Reg(operand.name)
        if isinstance(operand, Mem) and isinstance(operand.base, Sym) and operand.base.name in registers:
            return Mem(Reg(operand.base.name), operand.offset)
        return operand
