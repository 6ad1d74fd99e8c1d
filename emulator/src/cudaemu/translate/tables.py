"""Write the tables of a module that the runtime reads: C definitions of the structs of runtime/module.h."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cudaemu.ptx import Instr, Variable
from cudaemu.ptx.model import Loc
from cudaemu.translate.counting import Counting, may_compute_floats
from cudaemu.translate.facts import Facts, parameter_places
from cudaemu.translate.watching import Watching
from cudaemu.translated import MissingFeature, Template


@dataclass
class Site:
    """A row of struct site_info: a source location, the kind of operation there, its bytes and its memory order."""

    loc: Loc
    kind: str
    size: int
    order: int


class Sites:
    def __init__(self) -> None:
        self.rows: list[Site] = []
        self._known: dict[tuple[Loc, str, int], int] = {}

    def add(self, loc: Loc, kind: str, size: int, order: int) -> int:
        # Each load, store and atomic has its own site, because the runtime remembers an allocation there.
        if kind not in ("LOAD", "STORE", "ATOMIC"):
            known = self._known.setdefault((loc, kind, size), len(self.rows))
            if known < len(self.rows):
                return known
        self.rows.append(Site(loc, kind, size, order))
        return len(self.rows) - 1


class Tables:
    """The tables of one module. Initial values that they cannot express are added to `findings`."""

    def __init__(
        self, facts: Facts, sites: Sites, templates: Sequence[Template], findings: list[MissingFeature]
    ) -> None:
        self.facts, self.sites, self.templates, self.findings = facts, sites, templates, findings
        files = sorted(facts.module.files.items())
        self._files = [path for _, path in files]
        self._index = {number: i for i, (number, _) in enumerate(files)}
        self._kernels = [f for f in facts.module.functions.values() if f.entry and f.defined]

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels, in the order of their table."""
        return [f.name for f in self._kernels]

    def text(self, watched: bool, counting: Counting | None, watching: Watching | None) -> str:
        addressed = [n for n in sorted(self.facts.addressed) if self.facts.module.functions[n].defined]
        variables = self.facts.globals
        lines = [
            '#include "module.h"',
            f"__attribute__((weak)) u32 emulated_architecture = {self.facts.module.architecture};",
            "",
            _array("static const char *const files", [*map(c_string, self._files), '""']),
            *self._templates(),
            *self._sites(),
            *self._functions(addressed),
            *self._variables(variables),
            *self._kernel_table(),
        ]
        if counting:
            lines.append(counting.tables(self._file_of))
        if watching:
            lines += watching.tables(self._file_of)
        recorded = f"watch_table, {len(watching.sites)}, {watching.slots}" if watching else "0, 0, 0"
        lines.append(
            f"struct module_info {self.facts.prefix}_module = {{kernel_table, {len(self._kernels)}, variable_table, {len(variables)}, "
            f"function_table, {len(addressed)}, site_table, {len(self.sites.rows)}, files, "
            f"{watched:d}, {'&counting_tables' if counting else '0'}, {recorded}}};"
        )
        return "\n".join(lines) + "\n"

    def _file_of(self, loc: Loc) -> int:
        """The index of a location's file in `files`; the last entry stands for an unknown file."""
        return self._index.get(loc.file, len(self._files)) if loc.line else len(self._files)

    def _templates(self) -> Iterable[str]:
        for t in self.templates:
            yield f"template_function {t.name};"
        names = [t.name for t in self.templates] or ["0"]
        yield _array(f"template_function *const {self.facts.prefix}_templates", names)

    def _sites(self) -> Iterable[str]:
        yield "static const struct site_info site_table[] = {"
        for s in self.sites.rows:
            yield f"    {{(const char *)(u64){self._file_of(s.loc)}, {s.loc.line}, SITE_{s.kind}, {s.size}, {s.order}}},"
        yield "    {0, 0, 0, 0, 0}};"

    def _functions(self, addressed: Sequence[str]) -> Iterable[str]:
        rows = []
        for name in addressed:
            symbol = self.facts.names[name]
            sizes = self.facts.prototype(name)
            yield f"u64 {symbol}_address;"
            yield f"u32 {symbol}(struct warp *, u32, u32 **);"
            yield _array(f"static const u32 {symbol}_sizes", list(map(str, [*sizes, 0])))
            rows.append(f"{{{c_string(name)}, {symbol}, &{symbol}_address, {symbol}_sizes, {len(sizes)}}}")
        yield _array("static const struct function_info function_table", [*rows, "{0}"])

    def _variables(self, variables: Sequence[Variable]) -> Iterable[str]:
        rows = []
        for i, v in enumerate(variables):
            symbol = self.facts.global_name(v.name)
            yield f"u64 {symbol};"
            data, moves = self._initial(v)
            if v.init:
                yield f"static const u8 data_{i}[{v.size}] = {{{','.join(map(str, data))}}};"
            if moves:
                yield _array(f"static const struct relocation moves_{i}", moves)
            space = "CONST" if v.space == "const" else "MANAGED" if v.managed else "GLOBAL"
            rows.append(
                f"{{{c_string(v.name)}, {v.size}, {v.align}, VARIABLE_{space}, &{symbol}, "
                f"{f'data_{i}' if v.init else '0'}, {f'moves_{i}, {len(moves)}' if moves else '0, 0'}}}"
            )
        yield _array("static const struct variable_info variable_table", [*rows, "{0}"], ",\n    ")

    def _initial(self, v: Variable) -> tuple[bytearray, list[str]]:
        """A variable's initial bytes, without trailing zeros, which C adds; and the relocations for addresses in the
        bytes."""
        image = bytearray(max((item.offset + item.size for item in v.init), default=0))
        moves = []
        for item in v.init:
            if item.symbol is None:
                image[item.offset : item.offset + item.size] = item.value.to_bytes(item.size, "little")
            elif item.byte in (None, 0):
                address = self.facts.addresses.get(item.symbol)
                if address is None:
                    what = f"the initial value of {v.name} (address of {item.symbol})"
                    self.findings.append(MissingFeature(what, None, None, "set it at run time"))
                else:
                    moves.append(f"{{{item.offset}, &{address}, {item.value}}}")
        return image, moves

    def _kernel_table(self) -> Iterable[str]:
        rows = []
        for i, f in enumerate(self._kernels):
            facts, symbol = self.facts, self.facts.names[f.name]
            shared, static_end = facts.shared(f)
            dynamic = facts.dynamic_start(static_end) if facts.uses_dynamic else static_end
            params, parameter_bytes = parameter_places(f)
            sizes = {v.name: v.size for v in facts.shared_variables(f)}
            own = [f"{{{c_string(n)}, {at}, {sizes[n]}}}" for n, at in shared.items()]
            x, y, z = f.required_threads or f.max_threads or (0, 0, 0)
            yield f"u32 {symbol}(struct warp *, u32, u32 **);"
            places = [f"{{{at}, {size}}}" for at, size in params.values()]
            yield _array(f"static const struct parameter_info {symbol}_parameters", [*places, "{0, 0}"])
            yield _array(f"static const struct shared_info {symbol}_shared", [*own, "{0}"])
            rows.append(
                f"{{{c_string(f.name)}, {symbol}, {symbol}_parameters, {len(params)}, {parameter_bytes}, {static_end - facts.shared_start}, "
                f"{dynamic}, {facts.stack_bytes(f)}, REGISTERS_{i}, {x * y * z}, {symbol}_shared, {len(own)}, {{{', '.join(map(str, f.cluster or (0, 0, 0)))}}}, {int(facts.triggers(f))}, "
                f"{int(any(may_compute_floats(each) for each in f.body if isinstance(each, Instr)))}}}"
            )
        yield _array("static const struct kernel_info kernel_table", [*rows, "{0}"], ",\n    ")


def _array(declaration: str, rows: Sequence[str], separator: str = ", ") -> str:
    return f"{declaration}[] = {{{separator.join(rows)}}};"


def c_string(text: str) -> str:
    """A C string. Only numbers of a submission's text get into C, so no name can end the string."""
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode(errors="surrogateescape")) + '"'
