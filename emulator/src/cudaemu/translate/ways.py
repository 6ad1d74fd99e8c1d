"""Control flow as data: for each block of a form, its rows of threaded code and where lanes go at its end
(runtime/ways.c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOWHERE = 0xFFFFFFFF
"""`Way.stop` of a branch after which lanes never reconverge."""


@dataclass(frozen=True, slots=True)
class Gather:
    """The start of a block at which lanes gather for a warp function: its rows from `begin` to `end`, and
    the number (`call`) and site of the warp function."""

    begin: int
    end: int
    call: int
    site: int


@dataclass(frozen=True, slots=True)
class Way:
    """A struct way of runtime/ways.h, which explains the fields; `kind` is written without WAY_."""

    rows: int = 0
    end: int = 0
    spilled: int = 0
    reloaded: int = 0
    taken: int = 0
    otherwise: int = 0
    stop: int = NOWHERE
    cell: int = 0
    site: int = 0
    expected: int = 0
    gather: Gather | None = None
    kind: str = "GOTO"
    negated: bool = False
    code: bool = False
    waits: bool = False
    idle: bool = False
    leaves: int = 0
    decision: int = 0
    cells: tuple[int, int] = (0, 0)
    """The first place of the values that decide whether the loop ends, and their number."""

    @property
    def text(self) -> str:
        gather = f"{self.gather.end},{self.gather.call}u,{self.gather.site}" if self.gather else "0,0,0"
        return (
            f"{{{self.rows},{self.end},{self.spilled},{self.reloaded},{self.taken},{self.otherwise},{self.stop}u,"
            f"{self.cell},{self.site},{self.expected}u,{gather},WAY_{self.kind},{self.negated:d},{self.code:d},"
            f"{self.waits:d},{self.idle:d},{self.leaves},{self.decision},{self.cells[1]},{self.cells[0]}}}"
        )


ABSENT = Way(kind="ABSENT")


def form_text(
    name: str, ways: Sequence[Way], rows: str, templates: str, targets: Sequence[int], cells: Sequence[int], cases: str
) -> str:
    """C text of a struct form called `name`. `rows` defines its threaded code, NAME_code; `cases` are the blocks that
    contain C code."""
    lines = [f"extern const struct form {name};", rows]
    lines += [f"static const struct way {name}_ways[] = {{{','.join(way.text for way in ways)}}};"]
    lines.append(f"static const u16 {name}_targets[] = {{{','.join(map(str, targets)) or '0'}}};")
    lines.append(f"static const u32 {name}_cells[] = {{{','.join(map(str, cells)) or '0'}}};")
    if cases:
        lines += [
            f"static u32 {name}_blocks(struct warp *w, u8 *F, struct trip *t, u32 at) {{",
            "u8 *const sh = w->shared; const u32 shn = w->shared_size, local_base = *(const u32 *)F;",
            "(void)sh; (void)shn; (void)local_base;",
            f"u32 m = t->m;\nswitch (at) {{\n{cases}\n}}\nt->m = m; return at;\n}}",
        ]
    blocks = f"{name}_blocks" if cases else "0"
    lines.append(
        f"const struct form {name} = {{{name}_ways, {name}_code, {templates}, {name}_cells, {name}_targets, {blocks}}};\n"
    )
    return "\n".join(lines)
