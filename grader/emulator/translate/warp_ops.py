"""Communication within a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from grader.emulator.ptx import Imm, Instr, Operand
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.memory import lanes_meet


def check_members(w: Writer, members: Operand) -> None:
    """Reports lanes named in a mask that are not here, when the mask is known to be uniform."""
    lanes_meet(w)
    if not w.uniform(members):
        return
    text = w.s(members, "u32")
    w.line(
        f"if (UNLIKELY(({w.mask} & ~({text})) | (({text}) & w->live & ~{w.mask}))) rt_shuffle_check(w, {w.site('OTHER')}, {w.mask}, {text});"
    )


@handles("shfl")
def shfl(w: Writer, instr: Instr) -> None:
    both = "with_pred" in instr.mods
    d = instr.operands[0]
    operands = instr.operands[2:] if both else instr.operands[1:]
    a, b, c = operands[:3]
    mode = next(m for m in instr.mods if m in ("up", "down", "bfly", "idx"))
    if len(operands) == 4:
        check_members(w, operands[3])
    row = w.fresh("row")
    w.line(f"VU {row}[PIECES];")
    for i in w.pieces("u32"):
        w.line(f"{row}[{i}] = {w.v(a, 'b32', i)};")
    results, predicates = [], []
    for i in w.pieces("u32"):
        j, p, r = w.fresh("j"), w.fresh("p"), w.fresh("r")
        w.line(
            f"VU {j}; u32 {p}; shuffle_source_{mode}(IOTA({i}), {w.v(b, 'b32', i)}, {w.v(c, 'b32', i)}, &{j}, &{p});"
        )
        w.line(f"const VU {r} = permute_row({row}, {j});")
        results.append(r)
        predicates.append(f"{p} << {i * w.lanes}")
    w.put(d, "b32", lambda i: results[i])
    if both:
        w.put_pred(instr.operands[1], " | ".join(predicates))


@handles("vote")
def vote(w: Writer, instr: Instr) -> None:
    d, p = instr.operands[:2]
    mode = next(m for m in instr.mods if m in ("all", "any", "uni", "ballot"))
    members = "~0u"
    if len(instr.operands) > 2:
        check_members(w, instr.operands[2])
        if w.uniform(instr.operands[2]):
            members = w.s(instr.operands[2], "u32")
    text = w.pred(p)
    name = w.fresh("v")
    w.line(f"const u32 {name} = ({text}) & {w.mask} & ({members});")
    if mode == "ballot":
        w.put(d, "u32", lambda i: f"BU({name})")
        return
    everyone = f"({w.mask} & ({members}))"
    result = {
        "any": f"{name} != 0", "all": f"{name} == {everyone}", "uni": f"({name} == 0 || {name} == {everyone})",
    }[mode]  # fmt: skip
    w.put_pred(d, f"-(u32)({result})")


@handles("activemask")
def activemask(w: Writer, instr: Instr) -> None:
    w.put(instr.operands[0], "u32", lambda i: f"BU({w.mask})")


@handles("match")
def match(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    every = "all" in instr.mods
    both = "with_pred" in instr.mods
    operands = instr.operands[2:] if both else instr.operands[1:]
    check_members(w, operands[1])
    from grader.emulator.translate.memory import value_lanes

    w.line("u64 vv[32] __attribute__((aligned(64))); u32 mm[32] __attribute__((aligned(64)));")
    value_lanes(w, operands[0], "u64" if t == "b64" else "u32", "vv")
    w.line(
        "for (u32 l = 0; l < 32; l++) { mm[l] = 0; if ("
        + w.mask
        + " >> l & 1) for (u32 k = 0; k < 32; k++) if ("
        + w.mask
        + " >> k & 1 && vv[k] == vv[l]) mm[l] |= 1u << k; }"
    )
    if every:
        name = w.fresh("same")
        w.line(f"const u32 {name} = -(u32)(mm[lowest_lane({w.mask})] == {w.mask});")
        w.put(instr.operands[0], "u32", lambda i: f"BU({name} & {w.mask})")
        if both:
            w.put_pred(instr.operands[1], name)
        return
    w.put(instr.operands[0], "u32", lambda i: f"*(const VU *)&mm[{i * w.lanes}]")


@handles("redux")
def redux(w: Writer, instr: Instr) -> None:
    t = instr.mods[-1]
    how = next((m for m in instr.mods if m in ("add", "min", "max", "and", "or", "xor")), "")
    if t == "f32" or not how:
        raise w.refuse()
    check_members(w, instr.operands[2])
    kind = "i32" if t == "s32" else "u32"
    w.line(f"{kind} vv[32] __attribute__((aligned(64)));")
    for i in w.pieces("u32"):
        w.line(f"*(VU *)&vv[{i * w.lanes}] = {w.v(instr.operands[1], 'u32', i)};")
    step = {
        "add": "r + x",
        "min": "x < r ? x : r",
        "max": "x > r ? x : r",
        "and": "r & x",
        "or": "r | x",
        "xor": "r ^ x",
    }[how]
    name = w.fresh("r")
    w.line(
        f"{kind} {name}; {{ u32 l = lowest_lane({w.mask}); {kind} r = vv[l]; for (l++; l < 32; l++) if ({w.mask} >> l & 1) {{ const {kind} x = vv[l]; r = ({kind})({step}); }} {name} = r; }}"
    )
    w.put(instr.operands[0], "u32", lambda i: f"BU((u32){name})")


@handles("elect")
def elect(w: Writer, instr: Instr) -> None:
    raise w.refuse(advice="use lane 0 instead")


def _unused(_: Imm) -> None: ...
