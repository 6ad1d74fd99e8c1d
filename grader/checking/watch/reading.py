"""From labels to findings: which line computes the first wrong value, and what is wrong with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from grader.checking.probes.weights import scale_meaning
from grader.checking.watch.labels import SAME, Label, Number, Odd, Reader, numbers
from grader.checking.watch.recording import Watched
from grader.checking.watch.written import UNSURE
from grader.checking.wrong_places import even_step, spans
from grader.findings import Finding

CERTAIN, SURE, LIKELY = 0.95, 0.9, 0.7
Facts = dict[str, Any]
_STEEP = 1e3
"""No mistake with the scale alone makes the exponent grow so many times too fast, or too slowly."""


class _Writer:
    def __init__(self, reader: Reader, unit_label: Callable[[int], str]) -> None:
        self.reader, self.r, self.steps = reader, reader.recording, reader.steps
        self.unit_label = unit_label

    def finding(self, kind: str, node: int, certainty: float = SURE, other: int = 0, **facts: Any) -> Finding:
        """A finding at a node's line."""
        at, other_at = self.r.place(node), self.r.place(other)
        fields = {**(at.model_dump() if at else {}), "other": other_at if other_at != at else None}
        return Finding.from_facts(kind, facts, certainty=certainty, **fields)

    # ---- what a node that no step explains says -----------------------------------------------------------------

    def of_odd(self, odd: Odd, unit: int) -> Finding | None:
        node = odd.node
        match odd.why, odd.left, odd.right:
            case "slope", Label() as score, _:
                return self._slope(odd, score)
            case "factor", Label() as a, Label() as b:
                return self._factor(odd, a, b)
            case "twice", Label() as a, Label() as b:
                twice = spans(numbers(a.terms & b.terms))
                return self.finding("terms_repeated", node, array=self.name(a), over=self._over(a), numbers=twice)
            case "carried", Label() as a, Label() as b if a.step in self.reader.sums:
                kind = "sums_mixed" if self.reader.missing(a) and self.reader.missing(b) else "carried_over"
                return self.finding(kind, node, array=self.name(a), left=self.called(a), right=self.called(b))
            case "incomplete", Label() as a, _:
                return self.missing(a, node)
            case "start", Label() as a, Number() as number if number.how == "ex2":
                return self.finding("padding_added", node, LIKELY, array=self.name(a), value=number.value)
            case "start", Label() as a, Number() as number:
                written = math.isinf(number.value) or number.value == round(number.value)  # other numbers are computed
                sure = LIKELY if written else UNSURE
                return self.finding("start_wrong", node, sure, array=self.name(a), value=number.value)
            case "range", _, _:
                return self.finding("maximum_wrong", node, value=-odd.facts["shift"] or 0.0)
            case "index" | "unit" | "rows" | "product" | "sum", Label() as a, Label() as b:
                return self._operands(odd, a, b, unit)
            case "difference", _, _:
                of, found = self.reader.difference, odd.facts["found"] or 0.0
                facts: Facts = {"less": of.less, "found": found, "expected": odd.facts["expected"]}
                return self.finding("difference_wrong", node, array=of.of, **facts)
        return None

    def _slope(self, odd: Odd, score: Label) -> Finding | None:
        weights = self.reader.weights
        slope, scale = odd.facts["slope"], weights.scale
        slope = slope if abs(slope + 1) < SAME else abs(slope)
        meaning = scale_meaning(slope, scale)
        if meaning in (None, "unused") and not 1 / _STEEP < abs(slope) < _STEEP:
            return None
        made = 0 if meaning in ("negative", "base_two") else self._scaling(score.made)
        node = made if self.r.place(made) else odd.node
        facts: Facts = {"of": "Q Kᵀ" if weights.of in self.reader.sums else weights.of, "meaning": meaning}
        return self.finding("scale_wrong", node, slope=slope * scale, expected=scale, other=odd.node, **facts)

    def _scaling(self, node: int) -> int:
        """What scales the terms of a sum before they are added up, or elements of an input before that; else `node`."""
        for label in (self.reader.meanings[operand] for operand in self.r.operands(node)):
            if isinstance(label, Label) and label.terms.bit_count() == 1 and abs(label.factor) != 1 and label.made:
                return self._scaling(label.made)  # −1, of an element, has one bit, too
        return node

    def _factor(self, odd: Odd, left: Label, right: Label) -> Finding | None:
        """Two sums that were weighted relative to different maxima."""
        if not (left.source or right.source) or left.index[:2] != right.index[:2]:
            return None
        older = left.terms.bit_count() > right.terms.bit_count() or left.source < right.source
        sums, fresh = (left, right) if older else (right, left)
        log = self.reader.values[left.index[0]].log[left.index[1]]
        most = max(log[n] for n in numbers(left.terms | right.terms))
        apart = [math.log(abs(each.factor)) + most if each.factor else math.inf for each in (sums, fresh)]
        name = self.name(sums)
        if apart[1] > SAME < apart[1] - abs(apart[0]) and fresh.source:  # below 0: a maximum with terms still to come
            return self.finding("weight_of_other_maximum", fresh.source, array=name, other=odd.node)
        top = max(log[n] for n in numbers(sums.terms))
        divided = sum(math.exp(log[n] - top) for n in numbers(sums.terms))
        ratio = abs(sums.factor / fresh.factor) if fresh.factor else math.inf
        if abs(ratio * divided - 1) < SAME < abs(divided - 1):
            return self.finding("old_sum_left_out", odd.node, array=name)
        correction = float(self.r.value[sums.by]) if sums.by else math.nan
        if abs(correction - math.exp(top - most)) > SAME * abs(correction) and sums.by != odd.node:
            return self.finding("rescaled_wrongly", sums.by, array=name, other=odd.node)
        return self.finding("not_rescaled", odd.node, array=name)

    def _operands(self, odd: Odd, left: Label, right: Label, unit: int) -> Finding | None:
        inputs = set(self.reader.tensors)
        if {left.step, right.step} <= inputs and left.index[0] == right.index[0] != unit:
            what = " and ".join(dict.fromkeys((left.step, right.step)))
            units: Facts = {"label": self.unit_label(unit), "other_unit": self.unit_label(left.index[0])}
            return self.finding("other_unit_read", odd.node, array=what, **units)
        loads = [self._store_below(operand) for operand in self.r.operands(odd.node)[:2]]
        other = next((n for n in loads if n and self.r.place(n) and self.r.place(n) != self.r.place(odd.node)), 0)
        facts: Facts = {"left": self.called(left), "right": self.called(right)}
        if odd.why == "product":
            wrong = next((each.step for each in (right, left) if each.step in inputs), "")
            known = (left if right.step == wrong else right).step
            pairs = ([name for name, _ in each.factors] for each in self.steps.sums if len(each.factors) == 2)
            fit = (pair for pair in pairs if known in pair and wrong not in pair)
            expected = next((b if a == known else a for a, b in fit), "")
            if wrong and expected:
                sure = CERTAIN if expected in inputs else SURE  # else the other operand may be the wrong one
                return self.finding("other_input", odd.node, sure, other, **facts, found=wrong, wanted=expected)
        if odd.why in ("product", "sum"):
            return None
        if left.step == right.step:
            return self.finding("sums_mixed", odd.node, LIKELY, array=self.name(left), **facts)
        certainty = SURE if odd.why != "rows" else LIKELY
        return self.finding("operands_wrong", odd.node, certainty, other=other, **facts)

    def _store_below(self, node: int) -> int:
        """The store through which a loaded value came; 0 if there is none."""
        for _ in range(4):
            node = next(iter(self.r.operands(node)), 0)
            if self.r.operation(node) == "store":
                return node
        return 0

    def missing(self, label: Label, node: int) -> Finding:
        lacks = self.reader.missing(label)
        gone = numbers(lacks)
        at_end = not label.terms or gone[0] >= label.terms.bit_length() or gone[-1] < numbers(label.terms)[0]
        if at_end and (mask := self._mask(label, node)) is not None:
            return mask
        facts: Facts = {"count": len(gone), "numbers": spans(gone), "tile": even_step(gone)}
        facts["lost"] = "end" if at_end else None
        at = self._where_lost(label, lacks) or node
        return self.finding("terms_missing", at, array=self.name(label), over=self._over(label), other=node, **facts)

    def _mask(self, label: Label, node: int) -> Finding | None:
        """A query whose keys do not end where a mask says; None if there is no mask."""
        weights = self.reader.weights
        if label.step not in self.reader.of_rows | {weights.total}:
            return None
        row = label.index[1]
        first, end = weights.seen(row)
        if weights.seen(row + 1) == (first, end) == weights.seen(max(0, row - 1)):
            return None
        facts: Facts = {"found": spans(numbers(label.terms)) or "-", "expected": f"{first}–{end - 1}"}
        return self.finding("mask_wrong", node, array=self.name(label), query=row, **facts)

    def _where_lost(self, label: Label, lacks: int) -> int:
        """The node of a sum after which its missing terms are lost: if they lie between others, that of a part."""
        node = label.made
        operands = [self.reader.meanings[each] for each in self.r.operands(node)]
        parts = [each for each in operands if isinstance(each, Label) and each.terms > 0 and each.step == label.step]
        inside = lacks & ((1 << label.terms.bit_length()) - 1) & ~((label.terms & -label.terms) - 1)
        fresh = min(parts, key=lambda each: each.terms.bit_count(), default=None)
        return fresh.made if inside and fresh is not None and fresh.terms.bit_count() > 1 and fresh.made else node

    def name(self, label: Label) -> str:
        return self.steps.words.get(label.step, label.step)

    def _over(self, label: Label) -> str:
        return self.steps.words.get(f"over {label.step}", "terms")

    def called(self, label: Label) -> str:
        """ "K[7, 6]" or "score[3, 7]", with the unit if there are several."""
        unit, *inside = label.index
        return f"{self.name(label)}{unit if len(self.reader.values) > 1 else ''}[{', '.join(map(str, inside))}]"

    # ---- what a recognised value in a wrong place says ------------------------------------------------------------

    def of_label(self, root: int, label: Label, tensor: str, index: tuple[int, ...]) -> Finding | None:
        step, factor = self.steps.results[tensor]
        if label.step != step:
            if label.step in {*self.reader.tensors, *self.reader.sums, self.reader.weights.name}:
                return self.finding("other_result", root, LIKELY, array=tensor, found=self.called(label))
            return None
        if label.index != index:
            places = {f"{name}_{which}": n for which, where in (("found", label.index), ("expected", index))
                      for name, n in zip(("unit", "row", "column"), where, strict=False)}  # fmt: skip
            return self.finding("stored_elsewhere", root, array=tensor, **places)
        if self.reader.missing(label):
            return self.missing(label, root)
        if extra := self.reader.surplus(label):
            facts: Facts = {"over": self._over(label), "numbers": spans(numbers(extra))}
            return self.finding("terms_unseen", label.made or root, array=tensor, **facts)
        if abs(label.factor / factor - 1) > SAME:
            if label.step in self.reader.of_rows:
                total = math.exp(-float(self.reader.values[label.index[0]].log[label.index[1]].max()))
                if abs(label.factor / factor / total - 1) < SAME:
                    facts = {"how": "undivided", "row": label.index[1], "sum": float(f"{total:.4g}")}
                    return self.finding("rows_not_normalised", root, array=tensor, **facts)
            return self.finding("result_scaled", root, LIKELY, array=tensor, factor=label.factor / factor)
        return None


def read(reader: Reader, watched: Sequence[Watched], unit_label: Callable[[int], str] = str) -> list[Finding]:
    """What is wrong with the watched values, the finding that most of them show first. Empty if nothing is certain.
    Factors that differ in right values, too, are no mistake; lost terms may be too small to matter there."""
    writer = _Writer(reader, unit_label)
    kept: dict[tuple[object, ...], Finding] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    harmless = set[tuple[object, ...]]()
    for root, each in zip(reader.recording.roots, watched, strict=False):
        meaning, one = reader.meanings[root] if root else None, None
        if isinstance(meaning, Odd) and (not each.right or meaning.why == "factor"):
            one = writer.of_odd(meaning, each.index[0])
        elif isinstance(meaning, Label) and not each.right:
            one = writer.of_label(root, meaning, each.tensor, each.index)
        if one is not None:
            key = (one.kind, one.file, one.line)
            if each.right:
                harmless.add(key)
            else:
                kept.setdefault(key, one)
                counts[key] += 1
    return [kept[key] for key, _ in counts.most_common() if key not in harmless][:3]
