"""Recording where values come from (a build with `record`): instructions that tell runtime/values.c what each line computes.

`watch` inserts a pseudo-instruction behind every PTX instruction that computes, moves, loads or stores a float. From
these the runtime builds a graph: a node for each value that a thread computes, with its line, its operands and its
number. A register that holds floats has a *slot*, in which the runtime keeps the nodes of the 32 lanes. Integer
registers have one, too, if floats pass through them: a shuffle moves them as .b32.

nvcc writes exp and log as several instructions, some of them on integers. So programs that are recorded are compiled
with -use_fast_math, where each is one instruction and a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cudaemu.analysis.effects import is_special, written
from cudaemu.operations import OPERATIONS
from cudaemu.ptx import Function, Imm, Instr, Mem, Module, Operand, Reg, Sym, items_of
from cudaemu.ptx.model import Label, Loc
from cudaemu.ptx.modifiers import Modifiers
from cudaemu.translate.addresses import SPACE_CODES, lane_addresses
from cudaemu.translate.memory import param_rows
from cudaemu.translate.rows import declare, fill, value_lanes
from cudaemu.translate.writer import Writer, handles

_COMPUTES = {name: name for name in OPERATIONS[1:15]} | {"mad": "fma"}
_HIDES = ("mma", "wmma", "wgmma", "tex", "tld4", "suld", "ldmatrix")
_KNOWN = {"f32", "f64", "b32", "b64", "u32", "s32", "u64", "s64", "u16", "s16", "u8", "s8", "pred"}
_FLOATS = ("f32", "f64")
_WORDS = ("f32", "b32", "u32", "s32")
_NONE = 0xFFFFFFFF
_LANE = "%watch_lane"


@dataclass(frozen=True)
class WatchSite:
    """A row of struct watch_site: what an instruction does, where, and with which slots."""

    operation: int
    loc: Loc
    bytes: int
    results: tuple[int, ...]
    sources: tuple[int, ...]


@dataclass
class Watching:
    """The sites and slots of a module."""

    sites: list[WatchSite] = field(default_factory=list)
    slots: int = 0

    def tables(self, file_of: object) -> list[str]:
        rows = []
        for site in self.sites:
            results = [*site.results, *[_NONE] * (4 - len(site.results))]
            sources = [*site.sources, *[_NONE] * (4 - len(site.sources))]
            numbers = (site.operation, file_of(site.loc), site.loc.line, site.bytes)  # type: ignore[operator]
            lists = ", ".join(f"{{{', '.join(f'{n}u' for n in each)}}}" for each in (results, sources))
            rows.append(f"{{{', '.join(map(str, numbers))}, {lists}}}")
        return [f"static const struct watch_site watch_table[] = {{{', '.join([*rows, '{0}'])}}};"]


def watch(module: Module) -> Watching:
    """Insert the pseudo-instructions into all functions of `module`."""
    watching = Watching()
    for function in module.functions.values():
        if function.defined:
            _Inserter(function, watching).run()
    return watching


class _Inserter:
    def __init__(self, function: Function, watching: Watching) -> None:
        self.function, self.watching = function, watching
        self.slots: dict[str, int] = {}
        for name in _carriers(function):
            self.slots[name] = watching.slots
            watching.slots += 1

    def run(self) -> None:
        body: list[Instr | Label] = []
        self.function.registers[_LANE] = self.function.registers["%watch_from"] = "b32"
        for item in self.function.body:
            if isinstance(item, Label):
                body.append(item)
                continue
            for each in self._with_record(item):
                body.append(replace(each, index=len(body)))
        self.function.body = body

    def _slot(self, operand: Operand) -> int:
        return self.slots.get(operand.name, _NONE) if isinstance(operand, Reg) else _NONE

    def _with_record(self, instr: Instr) -> Iterator[Instr]:
        mods, op = instr.mods, instr.op
        if op in ("ld", "st") and mods.space == "param" and self._is_of_a_call(instr):
            passed, row = items_of(instr.operands[op == "st"]), instr.operands[op == "ld"]
            yield instr
            if set(map(self._slot, passed)) == {_NONE}:
                return
            if op == "ld":
                yield self._record(instr, "take", "none", passed, (), (row,))
            else:
                yield self._record(instr, "pass", "none", (), passed, (row,))
            return
        if op == "st" and mods.space != "param" and "async" not in mods:
            yield instr
            memory, value = instr.operands
            items = items_of(value)
            yield self._record(instr, "store", "store", (), items, (memory, *items), (mods.space, mods.type))
            return
        if op in ("atom", "red") and "async" not in mods and isinstance(instr.operands[op == "atom"], Mem):
            yield instr
            memory, value, *_ = instr.operands[op == "atom" :]
            how = "atomic" if mods.operation == "add" and mods.type in _FLOATS else "other"
            yield self._record(
                instr,
                "atomic",
                how,
                (),
                (value,),
                (memory, value),
                (mods.space, mods.type if how == "atomic" or mods.type not in _WORDS else "b32"),
            )
            yield from self._numbers(instr)
            return
        if op == "cp" and mods.action == "async" and len(instr.operands) >= 3 and "bulk" not in mods:
            yield instr
            to, source, size, *rest = instr.operands
            count = size.value if isinstance(size, Imm) and not rest else 0
            yield self._record(
                instr, "copy", "store", (), (), (to, source, Imm(count or 16), *rest[:1]), (mods.space, "b32")
            )
            return
        results = [name for name in written(instr) if name in self.slots]
        if not results:
            yield instr
            return
        first = instr.operands[0]
        if op == "shfl":
            lane = Reg(_LANE)
            yield Instr("mov", Modifiers.of(("u32",)), (lane, Reg("%laneid")), None, instr.loc, 0)
            at = instr.operands.index(instr.sources[0])
            own: list[Operand] = [Reg("%watch_from") if n == 0 else Reg("_") if n == 1 and mods.two_results else each
                   for n, each in enumerate(instr.operands)]  # fmt: skip
            own[at] = lane
            yield replace(instr, operands=tuple(own))
            yield instr
            yield self._record(instr, "from", "none", (first,), (instr.sources[0],), (Reg("%watch_from"),))
            return
        yield instr
        if op in _COMPUTES and mods.type in _FLOATS and len(results) == 1:
            sources = instr.operands[1:4]
            yield self._record(instr, "op", _COMPUTES[op], (first,), sources, (first, *sources), (mods.type,))
        elif (op == "cvt" and set(mods.types) <= set(_FLOATS)) or (
            op == "mov" and isinstance(first, Reg) and isinstance(instr.operands[1], Reg)
        ):
            yield self._record(instr, "move", "none", (first,), (instr.operands[1],), ())
        elif op == "mov" and isinstance(first, Reg) and isinstance(instr.operands[1], Imm):
            yield from self._numbers(instr)
        elif op == "selp":
            yield self._record(instr, "pick", "none", (first,), instr.operands[1:3], (instr.operands[3],))
        elif op in ("ld", "ldu") and mods.space != "param" and self._keeps_address(instr):
            items = items_of(first)
            yield self._record(instr, "load", "load", items, (), (instr.operands[1], *items), (mods.space, mods.type))
        else:
            yield from self._numbers(instr)

    def _numbers(self, instr: Instr) -> Iterator[Instr]:
        """Records of results that come from no float. A matrix instruction, or one on halves, hides where they come
        from."""
        hidden = instr.op in _HIDES or not set(instr.mods.types) <= _KNOWN
        for name in written(instr):
            if name in self.slots:
                kind = self.function.registers[name]
                how = "other" if hidden else "none"
                yield self._record(instr, "op" if hidden else "set", how, (Reg(name),), (), (Reg(name),), (kind,))

    def _is_of_a_call(self, instr: Instr) -> bool:
        """Whether it moves words between registers and an argument or a result of a call."""
        memory = instr.operands[instr.op == "ld"]
        if not isinstance(memory, Mem) or not isinstance(memory.base, Sym) or instr.mods.type not in _WORDS:
            return False
        return not (self.function.entry and any(each.name == memory.base.name for each in self.function.params))

    @staticmethod
    def _keeps_address(instr: Instr) -> bool:
        memory = instr.operands[1]
        return isinstance(memory, Mem) and not (isinstance(memory.base, Reg) and memory.base.name in written(instr))

    def _record(
        self, instr: Instr, kind: str, operation: str, results: Sequence[Operand], sources: Sequence[Operand],
        operands: Sequence[Operand], words: tuple[str, ...] = (),
    ) -> Instr:  # fmt: skip
        size = 8 if words and words[-1] == "f64" else 16 if words and words[-1] in ("b64", "u64", "s64") else 4
        if words and words[-1] in ("u8", "s8", "b8", "u16", "s16", "b16", "f16", "bf16"):
            size = 2
        self.watching.sites.append(
            WatchSite(OPERATIONS.index(operation), instr.loc, size, tuple(map(self._slot, results)),
                      tuple(map(self._slot, sources)))
        )  # fmt: skip
        number = Imm(len(self.watching.sites) - 1)
        return Instr("watch", Modifiers.of((kind, *words)), (number, *operands), instr.guard, instr.loc, 0)


def _carriers(function: Function) -> list[str]:
    """The registers that can hold floats: those of float types, and integer registers that exchange values with
    them."""
    carriers = {name for name, kind in function.registers.items() if kind in _FLOATS}
    words = {"b32", "u32", "s32"}
    through: dict[str, set[str]] = {"ld": set(), "st": set()}
    for instr in function.body:
        if isinstance(instr, Instr) and instr.op in through and instr.mods.type in words:
            value = instr.operands[instr.op == "st"]
            through[instr.op].update(item.name for item in items_of(value) if isinstance(item, Reg))
    carriers |= through["ld"] & through["st"]
    moves = []
    for instr in function.body:
        if isinstance(instr, Instr) and instr.op in ("mov", "shfl", "selp"):
            names = [o.name for o in instr.operands[: 4 if instr.op != "selp" else 3]
                     if isinstance(o, Reg) and not is_special(o.name) and function.registers.get(o.name) != "pred"]  # fmt: skip
            moves.append(names[:2] if instr.op == "shfl" else names)
    grown = True
    while grown:
        grown = False
        for names in moves:
            if carriers.intersection(names) and not carriers.issuperset(names):
                carriers.update(names)
                grown = True
    return sorted(name for name in carriers if name != "_")


@handles("watch")
def record(w: Writer, instr: Instr) -> None:
    """Write the call of the runtime for a pseudo-instruction."""
    kind, *words = instr.mods
    number, *operands = instr.operands
    assert isinstance(number, Imm)
    site, mask = w.number(number.value), w.mask
    if kind == "move":
        w.line(f"rt_watch_move(w, {site}, {mask});")
    elif kind == "pick":
        w.line(f"rt_watch_pick(w, {site}, {mask}, {w.pred(operands[0])});")
    elif kind in ("pass", "take"):
        (passed,) = operands
        assert isinstance(passed, Mem) and isinstance(passed.base, Sym)
        row = w.number((passed.base.offset + passed.offset) // 4 * 32)
        w.line(f"rt_watch_{kind}(w, {site}, {mask}, (const u32 *){param_rows(w, passed.base.name)} + {row});")
    elif kind == "from":
        declare(w, "from_")
        fill(w, "from_", operands[0])
        w.line(f"rt_watch_from(w, {site}, {mask}, from_);")
    elif kind == "copy":
        to, source, size, *rest = operands
        assert isinstance(to, Mem) and isinstance(source, Mem) and isinstance(size, Imm)
        lane_addresses(w, to, "to_", "shared")
        lane_addresses(w, source, "source_", "global")
        declare(w, "size_", "u64")
        value_lanes(w, rest[0] if rest else size, "u32", "size_")
        w.line(f"rt_watch_copy(w, {site}, to_, source_, {mask}, {w.number(size.value)}, size_);")
    else:
        memory = operands[0] if isinstance(operands[0], Mem) else None
        values = operands[1:] if memory else operands
        t = words[-1]
        if memory:
            lane_addresses(w, memory, "aa", words[0])
        read = "u64" if t in ("f64", "b64", "u64", "s64") else "u32"
        declare(w, "vv", "u64", len(values))
        for n, value in enumerate(values):
            if isinstance(value, Reg) and value.name == "_":
                continue
            narrow = t in ("u8", "s8", "b8", "u16", "s16", "b16", "f16", "bf16")
            value_lanes(w, value, "u16" if narrow else read, "vv", 32 * n)
        if memory:
            w.line(f"rt_watch_{kind}(w, {site}, {SPACE_CODES[words[0]]}, aa, {mask}, {len(values)}, vv);")
        else:
            w.line(f"rt_watch_{kind}(w, {site}, {mask}, {len(values)}, vv);")
