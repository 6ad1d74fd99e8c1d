"""Communication within a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

import zlib

from cudaemu.ptx import Imm, Instr, Operand
from cudaemu.translate.rows import declare, fill, row_piece, rows, rows_from, value_lanes
from cudaemu.translate.writer import Writer, handles


def check_members(w: Writer, members: Operand) -> None:
    """Emit a check that reports inactive lanes in a mask, and lanes that are missing from their own mask."""
    w.lanes_meet()
    site = w.site("OTHER")
    if w.uniform(members):
        w.line(f"check_members(w, {site}, {w.mask}, {w.s(members, 'u32')});")
    else:
        named = ", ".join(w.v(members, "u32", i) for i in w.pieces("u32"))
        w.line(f"check_member_rows(w, {site}, {w.mask}, {named});")


def call_number(instr: Instr) -> int:
    """A number that identifies a warp function at which lanes gather (gather.c); 0 for __syncwarp()."""
    return 0 if instr.mods.action == "warp" else zlib.crc32(instr.text.encode())


def ask(w: Writer, instr: Instr, members: Operand) -> None:
    """Write code that stores the values and the masks with which lanes of a divided warp call a warp function."""
    w.line("struct gathering *const g = TRIP->gathering;")
    fill(w, "g->asked", members)
    if instr.op == "vote":
        w.line(f"bits_row(g->brought, {w.pred(instr.operands[1])});")
    elif instr.mods.action != "warp":
        value_lanes(w, instr.sources[0], "u64" if instr.type == "b64" else "u32", "g->brought")


def together(w: Writer, instr: Instr, members: Operand, value: Operand) -> str:
    """C pointer to the values that lanes see: at an instruction where lanes gather, those of the lanes that have met,
    elsewhere those of the active lanes."""
    if instr.index in w.gathered:
        w.lanes_meet()
        return "&TRIP->gathering->together"
    check_members(w, members)
    rows(w, "members", members)
    declare(w, "offers", "u64")
    w.line("struct together all;")
    value_lanes(w, value, "u64" if instr.type == "b64" else "u32", "offers")
    w.line(f"see_together(&all, {w.mask}, members, offers);")
    return "&all"


@handles("shfl")
def shfl(w: Writer, instr: Instr) -> None:
    d = instr.operands[0]
    a, b, c, *members = instr.sources
    gathered = instr.index in w.gathered
    if members and not gathered:
        check_members(w, members[0])
    row = w.fresh("row")
    w.line(f"VU {row}[PIECES];")
    for i in w.pieces("u32"):
        w.line(f"{row}[{i}] = {w.v(a, 'b32', i)};")
    results, predicates = [], []
    for i in w.pieces("u32"):
        j, p, r = w.fresh("j"), w.fresh("p"), w.fresh("r")
        w.line(
            f"VU {j}; u32 {p}; shuffle_source_{instr.mods.operation}(IOTA({i}), {w.v(b, 'b32', i)}, {w.v(c, 'b32', i)}, &{j}, &{p});"
        )
        if not gathered:
            w.line(f"const VU {r} = permute_row({row}, {j});")
        results.append(r if not gathered else j)
        predicates.append(f"{p} << {i * w.lanes}")
    if gathered:
        w.lanes_meet()
        declare(w, "from")
        declare(w, "got")
        for i in w.pieces("u32"):
            w.line(f"{row_piece(w, 'from', 'u32', i)} = {results[i]};")
        w.line("rt_shuffle(&TRIP->gathering->together, m, from, got);")
        results = [row_piece(w, "got", "u32", i, const="const ") for i in w.pieces("u32")]
    w.put(d, "b32", lambda i: results[i])
    if instr.mods.two_results:
        w.put_pred(instr.operands[1], " | ".join(predicates))


@handles("vote")
def vote(w: Writer, instr: Instr) -> None:
    d, p = instr.operands[:2]
    mode = instr.mods.operation
    members = instr.operands[2] if len(instr.operands) > 2 else Imm(-1)
    votes = w.fresh("votes")
    if instr.index in w.gathered:
        w.lanes_meet()
        declare(w, votes)
        w.line(f"rt_ballot(&TRIP->gathering->together, m, {votes});")
        group = "TRIP->gathering->together.group"
        everyone = [row_piece(w, group, "u32", i, const="const ") for i in w.pieces("u32")]
        those = [row_piece(w, votes, "u32", i, const="const ") for i in w.pieces("u32")]
    else:
        if len(instr.operands) > 2:
            check_members(w, members)
        w.line(f"const u32 {votes} = ({w.pred(p)}) & {w.mask};")
        if w.uniform(members) and mode != "ballot":
            everyone_here = f"({w.mask} & ({w.s(members, 'u32')}))"
            w.line(f"const u32 {votes}_in = {votes} & {everyone_here};")
            result = {
                "any": f"{votes}_in != 0", "all": f"{votes}_in == {everyone_here}",
                "uni": f"({votes}_in == 0 || {votes}_in == {everyone_here})",
            }[mode]  # fmt: skip
            w.put_pred(d, f"-(u32)({result})")
            return
        everyone = [f"(BU({w.mask}) & {w.v(members, 'u32', i)})" for i in w.pieces("u32")]
        those = [f"(BU({votes}) & {w.v(members, 'u32', i)})" for i in w.pieces("u32")]
    if mode == "ballot":
        w.put(d, "u32", lambda i: those[i])
        return
    none = " | ".join(f"CMPU(0, {those[i]}, BU(0)) << {i * w.lanes}" for i in w.pieces("u32"))
    every = " | ".join(f"CMPU(0, {those[i]}, {everyone[i]}) << {i * w.lanes}" for i in w.pieces("u32"))
    w.put_pred(d, {"any": f"~({none})", "all": every, "uni": f"({none}) | ({every})"}[mode])


@handles("activemask")
def activemask(w: Writer, instr: Instr) -> None:
    w.put(instr.operands[0], "u32", lambda i: f"BU({w.mask})")


@handles("elect")
def elect(w: Writer, instr: Instr) -> None:
    """Elect the lowest lane of the mask; PTX leaves open which lane is the leader."""
    (members,) = instr.sources
    check_members(w, members)
    rows(w, "chosen", members)
    w.line(f"const u32 leader = lowest_lane(chosen[lowest_lane({w.mask})] & {w.mask});")
    w.put(instr.operands[0], "u32", lambda i: "BU(leader)")
    w.put_pred(instr.operands[1], "1u << leader")


@handles("match")
def match(w: Writer, instr: Instr) -> None:
    value, members = instr.sources
    seen = together(w, instr, members, value)
    declare(w, "same")
    w.line(f"const u32 equal = rt_match({seen}, {w.mask}, {int('all' in instr.mods)}, same);")
    rows_from(w, instr.operands[0], "same")
    if instr.mods.two_results:
        w.put_pred(instr.operands[1], "equal")


@handles("redux")
def redux(w: Writer, instr: Instr) -> None:
    t = instr.type
    how = instr.mods.operation
    if t == "f32" or not how:
        raise w.refuse()
    seen = together(w, instr, instr.operands[2], instr.operands[1])
    kind = t if how in ("min", "max") else "u32" if how == "add" else "b32"
    declare(w, "reduced")
    w.line(f"rt_reduce_{how}_{kind}({seen}, {w.mask}, reduced);")
    rows_from(w, instr.operands[0], "reduced")
