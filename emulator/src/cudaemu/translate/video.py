"""Video instructions: scalar ones, which select a part of each operand, and vector ones, on two half-words or four
bytes."""

from __future__ import annotations

from cudaemu.ptx import Imm, Instr
from cudaemu.translate.rows import declare, rows, rows_from
from cudaemu.translate.writer import Writer, handles

_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_PARTS = {"b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}


@handles(
    "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset", "vmad",
    *(f"v{what}{n}" for what in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for n in (2, 4)),
)  # fmt: skip
def video(w: Writer, instr: Instr) -> None:
    parts = int(instr.op[-1]) if instr.op[-1].isdigit() else 1
    what = instr.op[1:].rstrip("24")
    chosen = dict(m.split("_", 1) for m in instr.mods if "_" in m)  # the parser's modifiers d_h0, a_b1, …
    negated = [name.removesuffix("_neg") for name in instr.mods if name.endswith("_neg")]
    types = ("u32", *instr.mods.types) if what == "set" else instr.mods.types  # a comparison's result is unsigned
    second = instr.mods.operation
    if len(types) != 3 or (what in ("shl", "shr") and types[2] != "u32"):
        raise w.refuse()
    fields = [f".what = VIDEO_{what.upper()}", f".parts = {parts}"]
    fields += [f".{name}_signed = {int(t == 's32')}" for name, t in zip("dab", types, strict=True)]
    fields += [f".saturates = {int('sat' in instr.mods)}", f".wraps = {int('wrap' in instr.mods)}"]
    fields += [f".compare = {_COMPARE.index(m)}" for m in instr.mods if m in _COMPARE]
    if parts > 1:
        letter, other = ("h", (1, 0)) if parts == 2 else ("b", (3, 2, 1, 0))
        picks = {"a": other, "b": tuple(i + parts for i in other)}
        for name, default in picks.items():
            digits = tuple(map(int, chosen[name][1:])) if name in chosen else default
            if len(digits) != parts or max(digits) >= 2 * parts:
                raise w.refuse()
            fields.append(f".pick_{name} = {{{', '.join(map(str, reversed(digits)))}}}")
        mask = chosen.get("d", letter + "".join(map(str, other)))[1:]
        fields += [f".mask = {sum(1 << int(i) for i in mask)}", f".accumulates = {int(second == 'add')}"]
    else:
        for name in "dab":
            shift, bits = _PARTS[chosen[name]] if chosen.get(name) in _PARTS else (0, 32)
            fields.append(f".{name} = {{{shift}, {bits}}}")
        fields.append(f".second = {f'VIDEO_{second.upper()}' if second else '~0u'}")
        fields += [f".plus_one = {int('po' in instr.mods)}", f".negate_third = {int('c' in negated)}"]
        fields += [f".negate_product = {int(('a' in negated) != ('b' in negated))}"]
        fields += [f".scale = {7 if 'shr7' in instr.mods else 15 if 'shr15' in instr.mods else 0}"]
    operands = [*instr.operands[1:], Imm(0)][:3]
    w.line(f"static const struct video how = {{{', '.join(fields)}}};")
    if all(w.uniform(o) for o in operands):
        a, b, c = (w.s(o, "u32") for o in operands)
        w.put_scalar(instr.operands[0], "u32", f"rt_video_lane(&how, {a}, {b}, {c})")
        return
    for name, operand in zip(("va", "vb", "vc"), operands, strict=True):
        rows(w, name, operand)
    declare(w, "result")
    w.line(f"rt_video(&how, {w.mask}, va, vb, vc, result);")
    rows_from(w, instr.operands[0], "result")
