"""Kernels whose warps work in groups of lanes: tiles, groups by data, groups inside branches and loops, each with its own
masks, so that groups of one warp make different calls, or the same ones at different times."""

from __future__ import annotations

from random import Random

from tools.emulator_fuzz import collectives
from tools.emulator_fuzz.catalogue import Operation
from tools.emulator_fuzz.collectives import PARTIAL, SIGNATURE, Collective, Pair

TILES = ("tile_ballot", "tile_any", "tile_all", "tile_match_any", "tile_match_any_wide", "tile_match_all", "tile_shuffle", "tile_shuffle_any",
         "tile_shuffle_wide", "tile_up", "tile_down", "tile_xor", "tile_sum", "tile_least", "tile_most", "tile_odd", "tile_sum_wide",
         "tile_sum_up_to", "tile_sum_before", "tile_labels", "tile_halves")  # fmt: skip
WIDTHS = (1, 2, 4, 8, 16, 32)
STATEMENTS = 5
# What a group's first lane adds for all its members, and what each member adds on the host.
_ONCE_FOR_A_GROUP = (
    ("cg::reduce(group, {v}, cg::plus<u32>())", "{v}"),
    ("group.size() * {k}", "{k}"),
    ("__popc(group.ballot({v} & 1)) * {k}", "({v} & 1) * {k}"),
)


class Groups(Collective):
    """Like Collective, with statements that divide the lanes of `m`; the simulation's `label` is the group."""

    def _kinds(self, *, top: bool) -> list[collectives.Maker]:
        return [*super()._kinds(top=top), self._either_side, self._coalesced]

    def _nested(self, *, top: bool) -> list[collectives.NestedMaker]:
        return [*super()._nested(top=top), self._tile, self._tile, self._regroup, self._regroup]

    def _divide(self, mask: str, key: str, body: Pair) -> Pair:
        """`mask` of `outer` on the device; on the host, lanes with the same `key`. Begins with calls by all of `outer`."""
        for _ in range(3):
            d, h = self._collective()
            body = [*d, *body[0]], [*h, *body[1]]
        outer, kept = self._fresh("outer"), self._fresh("kept")
        device = [f"{{ const u32 {outer} = m; {{ const u32 m = {mask.format(outer=outer)}; (void)m;", *body[0], f"}} __syncwarp({outer}); }}"]  # fmt: skip
        host = [f"{{ auto {kept} = b.label; b.divide([&]{SIGNATURE} {{ u32 lane = t & 31; (void)lane; return u32({key}); }});",
                *body[1], f"b.label = {kept}; }}"]  # fmt: skip
        return device, host

    def _tile(self, depth: int, *, top: bool) -> Pair:
        width = self.random.choice(WIDTHS)
        device, host = self.pairs(self.random.randrange(1, 4), depth, top=False)
        if top and self.whole:
            for _ in range(self.random.randrange(1, 4)):
                d, h = self._apply(self.random.choice(TILES), f"<{width}>")
                device, host = [*d, *device], [*h, *host]
        ones = (1 << width) - 1
        return self._divide(f"{{outer}} & 0x{ones:x}u << (lane & {32 - width}u)", f"lane / {width}u", (device, host))

    def _regroup(self, depth: int, *, top: bool) -> Pair:
        keys = self.random.randrange(1, 7)
        key = f"({self.expressions.make('u32', 2)}) % {keys}u"
        mask = self.random.choice([f"__match_any_sync({{outer}}, {key})", f"with_same_key({{outer}}, {key}, {keys}u)"])
        return self._divide(mask, key, self.pairs(self.random.randrange(1, 4), depth, top=False))

    def _either_side(self) -> Pair:
        """The same call in both branches: lanes of one mask meet there."""
        name, to, source = self.random.choice(PARTIAL), self.random.randrange(4), self.random.randrange(4)
        k, condition, c = self.shared_expressions.make("u32", 1), self.expressions.condition(2), self._fresh("c")
        call = f"{name}(m, lane, x{source}, {k})"
        device = [f"if ({condition}) {{ x{to} = {call} * 3 + 1; }} else {{ x{to} = {call} ^ lane; }} __syncwarp(m);"]
        host = [f"{{ auto {c} = b.where([&]{SIGNATURE} {{ u32 lane = t & 31; (void)lane; return {condition}; }});",
                *self._together(name, to, source, k), self._each(f"x{to} = {c}[t] ? x{to} * 3 + 1 : x{to} ^ lane;"), "}"]  # fmt: skip
        return device, host

    def _coalesced(self) -> Pair:
        """Statements for the lanes in a branch, together or not, with results that do not depend on which lanes
        meet."""
        value, key, condition = f"({self.expressions.make('u32', 1)})", "0u", self.expressions.condition(2)
        group = "cg::coalesced_threads()"
        kind = self.random.randrange(3)
        if kind == 1:
            key = f"(({self.expressions.make('u32', 1)}) & 3u)"
            group = f"cg::labeled_partition(cg::coalesced_threads(), {key})"
        elif kind == 2:
            group = f"cg::tiled_partition(cg::coalesced_threads(), {self.random.choice(WIDTHS)})"
        total, each = self.random.choice(_ONCE_FOR_A_GROUP)
        k = self.random.randrange(1, 100)
        register = self.random.choice(("x0", "x1", "x2", "x3"))
        device = [f"if ({condition}) {{ const u32 slot = {key}; const auto group = {group}; const u32 all = {total.format(v=value, k=k)};",
                  f"if (group.thread_rank() == 0) atomicAdd(&sum[slot].w[0], all); {register} = group.shfl({register}, group.thread_rank()) + 1; }} __syncwarp(m);"]  # fmt: skip
        host = [self._each(f"if ({condition}) {{ sum[{key}].w[0] += {each.format(v=value, k=k)}; {register} += 1; }}")]
        return device, host


def kernel(random: Random, _operations: list[Operation], name: str) -> str:
    """Expressions are of plain arithmetic: other kinds of kernels try the operations."""
    return collectives.written(Groups(random, [], name), STATEMENTS)
