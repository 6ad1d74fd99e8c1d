"""The parts of a PTX module. Names follow the PTX ISA manual, version 9.0."""

from __future__ import annotations

from dataclasses import dataclass, field

from cudaemu.ptx.modifiers import Modifiers


@dataclass(frozen=True, slots=True)
class Loc:
    """A place in the student's sources. `file` is a PTX file number, a key of `Module.files`; line 0 is unknown."""

    file: int
    line: int


UNKNOWN = Loc(0, 0)


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, or a special register such as %tid.x. `negated` is the `!` of a predicate operand."""

    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal: the integer `value` if `width` is 0, else a float of `width` bits whose bits are `value`."""

    value: int
    width: int = 0  # 0: an integer; 32 (written 0f…) or 64 (0d…): a float


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable, parameter, function or label."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Mem:
    """[base + offset]."""

    base: Reg | Sym | Imm
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vec:
    """{a, b, …}: the parts of a vector access or of a packed move."""

    items: tuple[Operand, ...]


Operand = Reg | Imm | Sym | Mem | Vec


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The parts of a vector, or the operand itself."""
    return operand.items if isinstance(operand, Vec) else (operand,)


@dataclass(frozen=True, slots=True)
class Instr:
    """One instruction. In ld.global.v4.f32, `op` is ld and `mods` is (global, v4, f32). `index` is the instruction's
    position in the function's body, by which the analyses identify it."""

    op: str
    mods: Modifiers
    operands: tuple[Operand, ...]
    guard: Reg | None
    loc: Loc
    index: int = field(compare=False)
    results: tuple[Operand, ...] = ()  # calls only: the variables that receive return values
    callee: Operand | None = None  # calls only
    targets: tuple[str, ...] = ()  # the labels of a brx.idx, or the prototype or list of targets of an indirect call
    ptx_line: int = field(default=0, compare=False)  # in the PTX text, as ptxas counts; 0 is unknown

    @property
    def type(self) -> str:
        return self.mods.type

    @property
    def sources(self) -> tuple[Operand, ...]:
        """The operands after the one or two results. Only for instructions that have a result."""
        return self.operands[2 if self.mods.two_results else 1 :]

    @property
    def text(self) -> str:
        return ".".join((self.op, *self.mods))


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: str  # b8, u32, f64, …
    size: int  # bytes
    align: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A module or function variable in .global, .const, .shared, .local or .param space."""

    name: str
    space: str
    type: str
    size: int  # bytes; 0 for `extern []`
    align: int
    linkage: str = ""  # visible, extern, weak, common or empty
    managed: bool = False
    init: tuple[Initial, ...] = ()


@dataclass(frozen=True, slots=True)
class Initial:
    """The initial value of one element: `size` bytes at `offset` hold `value`, or the address of `symbol` plus `value`.
    `byte` selects one byte of that address, as in 0xFF00(symbol)."""

    offset: int
    size: int
    value: int
    symbol: str | None = None
    byte: int | None = None


@dataclass(slots=True)
class Function:
    name: str
    entry: bool
    params: tuple[Param, ...]
    returns: tuple[Param, ...]
    defined: bool
    body: list[Instr | Label] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)  # name → type
    variables: list[Variable] = field(default_factory=list)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None  # blocks, by __cluster_dims__
    loc: Loc = UNKNOWN


@dataclass(slots=True)
class Module:
    version: str
    target: str
    files: dict[int, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)

    @property
    def architecture(self) -> int:
        """90 for sm_90a."""
        return int("".join(filter(str.isdigit, self.target)))
