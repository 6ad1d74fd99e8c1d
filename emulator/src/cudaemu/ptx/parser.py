"""A parser for the PTX of nvcc and of inline assembly, which may have white space, comments and line breaks anywhere.

The parser takes statements, labels, brackets and directives off the text one after the other. Operands are memoised
(operands.py): a 5000-instruction kernel parses in well under 0.2 s.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from itertools import accumulate

from cudaemu.ptx.model import (
    UNKNOWN,
    Function,
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
from cudaemu.ptx.modifiers import BITS, SPACES, Modifiers
from cudaemu.ptx.operands import NAME, PtxSyntaxError, initial, integer, operand, split

TYPE_BYTES = {name: -(-bits // 8) for name, bits in BITS.items()}
MAX_REGISTERS = 1 << 20  # of a module, so that a mistyped number cannot fill the memory; large kernels have thousands
MAX_NESTING = 64  # of { }, which inline assembly and calls nest two or three deep; labels are sought at each level

_COMMENT = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.S)  # strings too, which can contain //
_SPACE = re.compile(r"\s+")
_STATEMENT = re.compile(r'(?:"[^"]*"|[^;"])*;')
_LABEL = re.compile(rf"({NAME})\s*:(?!:)\s*(?=(\.\w+)?)")
_LABELS_INSIDE = re.compile(rf"(?:^|[;{{}}:])\s*({NAME})\s*:(?!:)")
_LOC = re.compile(
    r"\.loc\s+(\d+)\s+(\d+)\s+\d+"
    r"(?:\s*,\s*function_name\s+[\w$.]+(?:\s*\+\s*\w+)?\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+\d+)?"
)
_FILE = re.compile(r'\.file\s+(\d+)\s*"([^"]*)"(?:\s*,\s*\d+\s*,\s*\d+)?')
_LIBRARY_FILE = re.compile(r"/(cuda[^/]*|nvidia|nvvm)/.*include/|^/usr/(lib|include)/|/triton/language/")
_SECTION = re.compile(r"\.section\s*[\w.$]+\s*\{[^}]*\}")
_VERSION = re.compile(r"\.version\s+(\d+\.\d+)")
_TARGET = re.compile(r"\.target\s+(\w+)(?:\s*,\s*\w+)*")
_ADDRESS_SIZE = re.compile(r"\.address_size\s+\d+")
_FUNCTION = re.compile(r"(?:\.(visible|extern|weak|common)\s*)?\.(?:entry|func)\b[^{;]*([{;])")
_INSTR = re.compile(r"(?:@\s*(!?)\s*([%\w$.]+)\s+)?([a-z]\w*(?:\s*(?:\.|::)\s*\w+)*)\s*(.*)$", re.S)
_TWO_RESULTS = re.compile(r"[\w%$.]+\s*\|\s*[\w%$.]+\s*,")
_VIDEO = re.compile(r"v(?:add|sub|absdiff|min|max|shl|shr|set|mad|avrg)[24]?$")
_PART = re.compile(r"\s*(-?)\s*(.*?)(?:\s*\.\s*([bh]\d+))?\s*$", re.S)
_REGISTERS = re.compile(r"\.reg\s*((?:\.\w+\s*)+?)\s*([%A-Za-z_$].*)$", re.S)
_VARIABLE = re.compile(
    r"(?P<flags>(?:\.\w+(?:\s*\([^)]*\)|\s+\d+)?\s*)*?)\.(?P<type>[a-z]\w*)\s*"
    r"(?<![\w$%])(?P<name>[A-Za-z_$%][\w$]*)\s*(?P<dims>(?:\[[^\]]*\]\s*)*)(?:=\s*(?P<init>.*))?$",
    re.S,
)
_PARAM = re.compile(
    r"\.(?:param|reg)\s*(?:\.align\s+(\d+)\s*)?\.(\w+)\s*(?:\.ptr\b\s*)?(?:\.(?:global|const|local|shared)\b\s*)?"
    r"(?:\.align\s+\d+\s+)?(?<![\w$%])([A-Za-z_$%][\w$]*)\s*(?:\[\s*(\w*)\s*\])?\s*$"
)


def parse(text: str, *, first_file: int = 0) -> Module:
    """Parse one PTX module, with `first_file` added to its file numbers. Raises `PtxSyntaxError`."""
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
        # Inline assembly can put any text into PTX, and half a statement must not crash the parser.
        raise PtxSyntaxError(f"an incomplete statement ({type(error).__name__})") from error


def link_modules(modules: list[Module]) -> Module:
    """Merge modules compiled with -rdc=true: definitions replace declarations."""
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


class _Parser:
    def __init__(self, text: str, first_file: int) -> None:
        self.first_file = first_file
        self.module = Module("", "")
        self.function: Function | None = None
        self.loc = UNKNOWN
        self.scopes: list[dict[str, str | None]] = []  # for each { }, what its names were renamed to outside of it
        self.register_count = 0
        self._line = 0
        self.scope_count = 0
        self.wide: set[str] = set()  # .b128 registers, each stored as two of .b64
        self.rename: dict[str, str] = {}
        text = _COMMENT.sub(lambda found: found[1] or " " + "\n" * found[0].count("\n"), text)
        if any(line.count('"') % 2 for line in text.split("\n")):
            raise PtxSyntaxError("a string that does not end in its line")
        for found in _FILE.finditer(text):  # in advance: nvcc writes .file last, but parsing .loc needs the names
            self.module.files[int(found[1]) + first_file] = os.path.normpath(found[2])
        lines = [(number, _SPACE.sub(" ", line).strip()) for number, line in enumerate(text.split("\n"), 1)]
        lines = [(number, line) for number, line in lines if line]
        self._numbers = [number for number, _ in lines]
        self._starts = list(
            accumulate((len(line) + 1 for _, line in lines), initial=0)
        )  # in the text without line breaks
        self._run(" ".join(line for _, line in lines))

    # ---- statements -------------------------------------------------------------------------------------------

    def _run(self, text: str) -> None:
        at, end = 0, len(text)
        while at < end:
            at = self._one(text, at)
            while at < end and text[at] == " ":
                at += 1
        if self.function is not None:
            raise PtxSyntaxError(f"function {self.function.name}, which has no closing }}")

    def _one(self, text: str, at: int) -> int:
        """Parse a statement, label, bracket or directive, and return the position after it."""
        c = text[at]
        if c == ";":
            return at + 1
        if c == "{":
            self._open(text, at)
            return at + 1
        if c == "}":
            self._close()
            return at + 1
        if c == ".":
            after = self._directive(text, at)
            if after:
                return after
        elif self.function is not None:
            label = _LABEL.match(text, at)
            if label:
                if label[2] in (".branchtargets", ".callprototype", ".calltargets"):
                    end = self._end(text, label.end())
                    self._label_directive(label[1], label[2], text[label.end() + len(label[2]) : end - 1].strip())
                    return end
                self.function.body.append(Label(self._label(label[1])))
                return label.end()
        end = self._end(text, at)
        self._line = self._numbers[bisect_right(self._starts, at) - 1]
        self._statement(text[at : end - 1].rstrip())
        return end

    def _end(self, text: str, at: int) -> int:
        """The position after the semicolon that ends the statement at `at`."""
        end = text.find(";", at) + 1
        if end and '"' not in text[at:end]:
            return end
        match = _STATEMENT.match(text, at)
        if not match:
            raise PtxSyntaxError(f"unfinished statement {text[at : at + 120]!r}")
        return match.end()

    def _directive(self, text: str, at: int) -> int:
        """Parse a directive that needs no semicolon, and return the position after it; 0 if there is none at `at`."""
        found = _LOC.match(text, at)
        if found:
            self._loc(found)
            return found.end()
        found = _FUNCTION.match(text, at) if self.function is None else None
        if found:
            self._header(text[at : found.end() - 1], defined=found[2] == "{")
            return found.end()
        for pattern in (_FILE, _SECTION, _ADDRESS_SIZE):
            found = pattern.match(text, at)
            if found:
                return found.end()
        found = _VERSION.match(text, at)
        if found:
            self.module.version = found[1]
            return found.end()
        found = _TARGET.match(text, at)
        if found:
            self.module.target = found[1]
            return found.end()
        return 0

    def _loc(self, found: re.Match[str]) -> None:
        if int(found[2]) == 0:  # code that nvcc adds has line 0: keep the last real line
            return
        file, number = int(found[1]) + self.first_file, int(found[2])
        if found[3] and not self._own(file) and self._own(int(found[3]) + self.first_file):
            file, number = int(found[3]) + self.first_file, int(found[4])
        elif not self._own(file) and self.loc.line:  # in a library's header: keep the last line of the student's code
            return
        self.loc = Loc(file, number)

    def _own(self, file: int) -> bool:
        path = self.module.files.get(file)
        return path is None or not _LIBRARY_FILE.search(path)

    def _open(self, text: str, at: int) -> None:
        if self.function is None:
            raise PtxSyntaxError(f"a {{ outside a function: {text[at : at + 120]!r}")
        if len(self.scopes) == MAX_NESTING:
            raise PtxSyntaxError(f"{{ }} nested more than {MAX_NESTING} deep")
        self.scopes.append({})
        self.scope_count += 1
        for name in _labels_inside(text, at):  # labels are local to their { }, and branches can precede them
            self._rename(name, f"{name}.{self.scope_count}")

    def _rename(self, name: str, unique: str) -> None:
        """Give a name of the current { } its unique name."""
        self.scopes[-1].setdefault(name, self.rename.get(name))
        self.rename[name] = unique

    def _close(self) -> None:
        if self.scopes:
            for name, outside in self.scopes.pop().items():
                if outside is None:
                    del self.rename[name]
                else:
                    self.rename[name] = outside
            return
        if self.function is None:
            raise PtxSyntaxError("a } outside a function")
        self.function = None
        self.rename = {}
        self.loc = UNKNOWN

    def _label(self, name: str) -> str:
        return self.rename.get(name, name)

    # ---- declarations -----------------------------------------------------------------------------------------

    def _header(self, text: str, *, defined: bool) -> None:
        match = re.match(
            r"(?:\.(?:visible|extern|weak)\s*)?\.(entry|func)\b\s*(?:\.noreturn\b\s*)?(?:\(([^()]*)\))?\s*([A-Za-z_$%][\w$]*)\s*"
            r"(?:\((.*?)\))?\s*(.*)$",
            text.strip(),
            re.S,
        )
        if not match:
            raise PtxSyntaxError(f"function header {text[:120]!r}")
        kind, returns, name, params, attributes = match.groups()
        function = Function(
            name,
            kind == "entry",
            self._params(params),
            self._params(returns),
            defined,
            loc=self.loc,
        )
        for directive, field_name in (
            ("maxntid", "max_threads"),
            ("reqntid", "required_threads"),
            ("reqnctapercluster", "cluster"),
        ):
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
            self.wide = set()

    def _params(self, text: str | None) -> tuple[Param, ...]:
        params = []
        for part in split(text or ""):
            match = _PARAM.match(part.strip())
            if not match or match[2] not in TYPE_BYTES:
                raise PtxSyntaxError(f"parameter {part.strip()!r}")
            size = TYPE_BYTES[match[2]]
            count = integer(match[4]) if match[4] else 1
            params.append(Param(match[3], match[2], size * count, int(match[1] or size)))
        return tuple(params)

    def _label_directive(self, label: str, directive: str, text: str) -> None:
        assert self.function is not None
        if directive != ".callprototype":  # a call itself has all that its prototype says
            self.function.branch_targets[self._label(label)] = tuple(self._label(n.strip()) for n in text.split(","))

    def _statement(self, text: str) -> None:
        if text[0] != ".":
            self._instruction(text)
        elif re.match(r"\.reg\b", text):
            self._registers(text)
        elif not re.match(r"\.(pragma|alias|maxnreg|minnctapersm|noreturn)\b", text):
            self._variable(text)

    def _registers(self, text: str) -> None:
        match = _REGISTERS.match(text)
        kinds = re.findall(r"\.(\w+)", match[1]) if match else []
        if self.function is None or not match or len(kinds) != 1 or kinds[0] not in TYPE_BYTES:
            raise PtxSyntaxError(f"register declaration {text[:120]!r}")
        for name in match[2].split(","):
            name = name.strip()
            several = re.match(rf"({NAME})\s*<\s*(\w+)\s*>$", name)
            if several:
                for i in range(integer(several[2])):
                    self._register(f"{several[1]}{i}", kinds[0])
            elif re.match(rf"{NAME}$", name):
                self._register(name, kinds[0])
            else:
                raise PtxSyntaxError(f"register declaration {text[:120]!r}")

    def _register(self, name: str, kind: str) -> None:
        assert self.function is not None
        self.register_count += 1
        if self.register_count > MAX_REGISTERS:
            raise PtxSyntaxError(f"more than {MAX_REGISTERS:,} registers")
        unique = name
        if self.scopes:  # names are local to their { }, which inline assembly and calls use
            unique = f"{name}.{self.scope_count}"
            self._rename(name, unique)
        if kind == "b128":
            self.wide.add(unique)
            self.function.registers |= {f"{unique}.low": "b64", f"{unique}.high": "b64"}
        else:
            self.function.registers[unique] = kind

    def _variable(self, text: str) -> None:
        match = _VARIABLE.match(text)
        if not match:
            raise PtxSyntaxError(f"declaration {text[:120]!r}")
        flags, kind, name = match["flags"], match["type"], match["name"]
        words = re.findall(r"\.(\w+)", flags)
        space = next((w for w in words if w in SPACES), "")
        if not space or kind not in TYPE_BYTES:
            raise PtxSyntaxError(f"declaration {text[:120]!r}")
        element = TYPE_BYTES[kind]
        align = re.search(r"\.align\s+(\d+)", flags)
        dims = [integer(d) if d.strip() else 0 for d in re.findall(r"\[([^\]]*)\]", match["dims"])]
        init = initial(match["init"], kind, element, dims) if match["init"] else ()
        count = 1
        for dim in dims:
            count *= dim
        if dims and dims[0] == 0 and init:
            count = (init[-1].offset + init[-1].size) // element
        if min(dims, default=0) < 0 or (init and init[-1].offset + init[-1].size > element * count):
            raise PtxSyntaxError(f"declaration {text[:120]!r}")
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
            self._rename(name, unique)
            variable = Variable(unique, space, kind, variable.size, variable.align, linkage, False, init)
        self.function.variables.append(variable)

    # ---- instructions -----------------------------------------------------------------------------------------

    def _instruction(self, text: str) -> None:
        function = self.function
        if function is None:
            raise PtxSyntaxError(f"instruction outside a function: {text[:120]!r}")
        match = _INSTR.match(text)
        if not match:
            raise PtxSyntaxError(f"instruction {text[:120]!r}")
        negated, guard_name, name, rest = match.groups()
        words = re.sub(r"\s", "", name).replace("::", "__").split(".")
        guard = Reg(self.rename.get(guard_name, guard_name), negated == "!") if guard_name else None
        if words[0] == "call":
            function.body.append(self._call(words, rest, guard, len(function.body)))
            return
        two_results = "|" in rest and _TWO_RESULTS.match(rest) is not None  # shfl.sync d|p, …
        if two_results:
            rest = rest.replace("|", ",", 1)
        parts = split(rest)
        if _VIDEO.match(words[0]):
            parts, chosen = _parts_chosen(parts)
            words += chosen
        operands = tuple(self._renamed(operand(part)) for part in parts)
        if "L2__cache_hint" in words:  # the last operand is the cache policy, which changes no result
            operands = operands[:-1]
        targets: tuple[str, ...] = ()
        if words[0] == "brx":
            last = operands[-1] if operands else None
            if not isinstance(last, Sym) or last.name not in function.branch_targets:
                raise PtxSyntaxError(f"instruction {text[:120]!r}")
            targets = function.branch_targets[last.name]
        for part, rest_words in _halves(tuple(words[1:]), operands):
            mods = Modifiers.of(rest_words, two_results=two_results)
            function.body.append(
                Instr(words[0], mods, part, guard, self.loc, len(function.body), targets=targets, ptx_line=self._line)
            )

    def _call(self, words: list[str], rest: str, guard: Reg | None, index: int) -> Instr:
        match = re.match(
            r"(?:\(([^)]*)\)\s*,\s*)?([\w$%.]+)\s*(?:,\s*\(([^)]*)\))?\s*(?:,\s*([\w$]+))?\s*$", rest, re.S
        )
        if not match:
            raise PtxSyntaxError(f"call {rest[:120]!r}")
        returns = tuple(self._renamed(operand(p)) for p in split(match[1] or ""))
        arguments = tuple(self._renamed(operand(p)) for p in split(match[3] or ""))
        callee = self._renamed(operand(match[2]))
        targets = (match[4],) if match[4] else ()
        return Instr(
            "call",
            Modifiers.of(tuple(words[1:])),
            arguments,
            guard,
            self.loc,
            index,
            returns,
            callee,
            targets,
            self._line,
        )

    def _renamed(self, given: Operand) -> Operand:
        """The operand with the renamings of the current { }. A symbol that names a register becomes a register, because
        names of registers in inline assembly need no %."""
        if isinstance(given, Reg | Sym):
            assert self.function is not None
            name = self.rename.get(given.name, given.name)
            if name in self.wide:
                return Vec((Reg(f"{name}.low"), Reg(f"{name}.high")))
            if isinstance(given, Reg):
                return given if name == given.name else Reg(name, given.negated)
            if name in self.function.registers:
                return Reg(name)
            return given if name == given.name else Sym(name, given.offset)
        if isinstance(given, Mem):
            base = self._renamed(given.base)
            if isinstance(base, Mem | Vec):
                raise PtxSyntaxError(f"the address of {given}")
            return given if base is given.base else Mem(base, given.offset)
        if isinstance(given, Vec):
            return Vec(tuple(self._renamed(item) for item in given.items))
        return given


def _halves(mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[tuple[tuple[Operand, ...], tuple[str, ...]]]:
    """Rewrite an instruction on .b128 registers, each of which is stored as two .b64 registers: a mov becomes two
    instructions, any other instruction one with .v2."""
    if mods[-1:] != ("b128",):
        return [(operands, mods)]
    vectors = [o for o in operands if isinstance(o, Vec) and len(o.items) == 2]
    if len(vectors) == len(operands) == 2:  # mov
        return [(tuple(v.items[half] for v in vectors), (*mods[:-1], "b64")) for half in (0, 1)]
    return [(operands, (*mods[:-1], "v2", "b64"))]


def _parts_chosen(operands: list[str]) -> tuple[list[str], list[str]]:
    """Turn the signs and selectors of a video instruction's operands into modifiers: if the second operand is -x.b0,
    it becomes x, and the modifiers are a_neg and a_b0."""
    plain, chosen = [], []
    for name, text in zip("dabc", operands, strict=False):
        found = _PART.match(text)
        assert found is not None
        sign = "" if found[2][:1].isdigit() else found[1]
        plain.append(found[2] if sign else f"{found[1]}{found[2]}")
        chosen += [f"{name}_neg"] if sign else []
        chosen += [f"{name}_{found[3]}"] if found[3] else []
    return plain, chosen


def _labels_inside(text: str, at: int) -> list[str]:
    """Names of the labels between the { at `at` and its }."""
    depth, end = 0, at
    while True:
        closing = text.find("}", end)
        if closing < 0:
            raise PtxSyntaxError(f"a {{ without its }}: {text[at : at + 120]!r}")
        depth += text.count("{", end, closing) - 1
        end = closing + 1
        if depth <= 0:
            inside = text[at + 1 : closing]
            return _LABELS_INSIDE.findall(inside) if ":" in inside else []
