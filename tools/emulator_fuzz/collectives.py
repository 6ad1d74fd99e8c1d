"""Kernels whose threads work together: votes and shuffles under divergence, barriers and shared memory, atomics. Every
statement is written twice: for a thread of the device, and for all threads of a simulated block (simulation.cuh)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from tools.emulator_fuzz.catalogue import Operation
from tools.emulator_fuzz.scalars import Expressions

PARTIAL = ("shuffle", "shuffle_same", "shuffle_wide", "shuffle_float", "shuffle_double", "ballot", "any_of", "all_of", "match_any",
           "match_any_wide", "match_all", "reduce_add", "reduce_min", "reduce_max", "reduce_and", "reduce_or", "reduce_xor")  # fmt: skip
WHOLE = ("whole_xor", "whole_up", "whole_down", "whole_index", "whole_xor8")
STATEMENTS = 14
_REGISTERS = ("x0", "x1", "x2", "x3")
SIGNATURE = "(u32 t, u32 &x0, u32 &x1, u32 &x2, u32 &x3)"
_EACH = f"b.each([&]{SIGNATURE}"
# Atomics whose result does not depend on the order: device call, and the same on the host's `g` (a union of views).
_ATOMICS = (
    ("atomicAdd(&{u}, {v})", "{u} += {v}"),
    ("atomicSub(&{u}, {v})", "{u} -= {v}"),
    ("atomicAdd((int *)&{u}, s32({v}))", "{u} += {v}"),
    ("atomicAdd((unsigned long long *)&{q}, (unsigned long long)({v}) * 77777777777ull)", "{q} += u64({v}) * 77777777777ull"),
    ("atomicMin(&{lo}, {v})", "{lo} = smaller<u32>({lo}, {v})"),
    ("atomicMax((int *)&{hi}, s32({v}))", "{hi} = u32(larger<s32>(s32({hi}), s32({v})))"),
    ("atomicMin((long long *)&{qlo}, (long long)(s64(s32({v})) << 17))", "{qlo} = u64(smaller<s64>(s64({qlo}), s64(s32({v})) * 131072))"),
    ("atomicMax((unsigned long long *)&{qhi}, (unsigned long long)({v}) << 9)", "{qhi} = larger<u64>({qhi}, u64({v}) << 9)"),
    ("atomicAnd(&{a}, {v} | 0x00ffff00u)", "{a} &= {v} | 0x00ffff00u"),
    ("atomicOr(&{o}, {v} & 0x11111111u)", "{o} |= {v} & 0x11111111u"),
    ("atomicXor(&{x}, {v})", "{x} ^= {v}"),
    ("atomicXor((unsigned long long *)&{qx}, (unsigned long long)({v}) << 13)", "{qx} ^= u64({v}) << 13"),
    ("atomicInc(&{inc}, 12u)", "{inc} = {inc} >= 12u ? 0 : {inc} + 1"),
    ("atomicDec(&{dec}, 9u)", "{dec} = {dec} == 0 || {dec} > 9u ? 9u : {dec} - 1"),
    ("atomicAdd(&{f}, f32(({v}) & 15u))", "{f} += f32(({v}) & 15u)"),
    ("atomicAdd(&{d}, f64({v}))", "{d} += f64({v})"),
    ("atomicAdd(&{n}, atomicAdd(&{tick}, 1u))", "{n} += {tick}, {tick} += 1"),
    ("multiply_by_cas(&{m}, {v})", "{m} *= {v} | 1u"),
)  # fmt: skip
_PLACES = {"u": "w[0]", "lo": "w[1]", "hi": "w[2]", "a": "w[3]", "o": "w[4]", "x": "w[5]", "inc": "w[6]", "dec": "w[7]",
           "n": "w[8]", "tick": "w[9]", "m": "w[10]", "q": "q[0]", "qlo": "q[1]", "qhi": "q[2]", "qx": "q[3]", "f": "f", "d": "d"}  # fmt: skip

PRELUDE = """
struct Accumulator { u64 q[4]; f64 d; u32 w[11]; f32 f; };
__device__ inline void multiply_by_cas(u32 *at, u32 v) {
    u32 seen = *(volatile u32 *)at, old;
    do {
        old = seen;
        seen = atomicCAS(at, old, old * (v | 1u));
    } while (seen != old);
}
"""


Pair = tuple[list[str], list[str]]
"""Statements for the device, and the same for the host."""
Maker = Callable[[], Pair]


class NestedMaker(Protocol):
    def __call__(self, depth: int, *, top: bool) -> Pair: ...


class Collective:
    """Writes one kernel's statements in pairs: (device, host)."""

    def __init__(self, random: Random, operations: list[Operation], name: str) -> None:
        self.random = random
        self.name = name
        self.threads = random.choice([32, 64, 96, 128, 33, 50, 100, 1, 17])
        self.blocks = random.randrange(1, 4)
        self.whole = self.threads % 32 == 0
        integer = [o for o in operations if all(t[0] in "us" for t in (o.result, *o.arguments))]
        variables = {**dict.fromkeys(_REGISTERS, "u32"), "t": "u32", "lane": "u32", "number": "u32", "seed": "u32"}
        self.expressions = Expressions(random, integer, variables)
        self.shared_expressions = Expressions(random, integer, {"number": "u32", "seed": "u32"})
        self.count = 0

    def pairs(self, count: int, depth: int, *, top: bool) -> Pair:
        device: list[str] = []
        host: list[str] = []
        for _ in range(count):
            d, h = self._statement(depth, top=top)
            device += d
            host += h
        return device, host

    def _statement(self, depth: int, *, top: bool) -> Pair:
        if depth > 0 and self.random.random() < 0.45:
            return self.random.choice(self._nested(top=top))(depth - 1, top=top)
        return self.random.choice(self._kinds(top=top))()

    def _kinds(self, *, top: bool) -> list[Maker]:
        kinds: list[Maker] = [self._assign, self._collective, self._collective, self._atomic]
        return [*kinds, self._exchange, self._exchange, self._count, self._shared_atomics] if top else kinds

    def _nested(self, *, top: bool) -> list[NestedMaker]:
        return [self._if, self._while] + ([self._repeat, self._uniform_if] if top else [])

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def _each(self, text: str) -> str:
        return f"{_EACH} {{ u32 lane = t & 31; (void)lane; {text} }});"

    def _assign(self) -> Pair:
        text = f"{self.random.choice(_REGISTERS)} = {self.expressions.make('u32', 3)};"
        return [text], [self._each(text)]

    def _collective(self) -> Pair:
        return self._apply(self.random.choice(PARTIAL))

    def _apply(self, name: str, template: str = "") -> Pair:
        to, source = self.random.randrange(4), self.random.randrange(4)
        k = self.shared_expressions.make("u32", 1)
        device = [f"x{to} = {name}{template}(m, lane, x{source}, {k});"]
        return device, self._together(name + template, to, source, k)

    @staticmethod
    def _together(name: str, to: int, source: int, k: str) -> list[str]:
        call = f"host_{name}(m, lane, v, {k})"
        return [f"b.together({to}, {source}, [&](u32 m, u32 lane, const u32 *v) {{ return {call}; }});"]

    def _atomic(self) -> Pair:
        device, host = self.random.choice(_ATOMICS)
        value = self.expressions.make("u32", 1)
        # One address for all, one for each of a few lanes, or one that depends on data.
        where = self.random.choice(["0u", "lane & 3u", f"({self.expressions.make('u32', 1)}) & 3u"])
        call = device.format(v=f"({value})", **{k: f"sum[slot].{p}" for k, p in _PLACES.items()})
        same = host.format(v=f"({value})", **{k: f"sum[slot].{p}" for k, p in _PLACES.items()})
        return [f"{{ u32 slot = {where}; {call}; }}"], [self._each(f"u32 slot = {where}; {same};")]

    def _if(self, depth: int, *, top: bool) -> Pair:
        condition = self.expressions.condition(2)
        yes, before, c = self._fresh("yes"), self._fresh("before"), self._fresh("c")
        d1, h1 = self.pairs(self.random.randrange(1, 4), depth, top=False)
        d2, h2 = self.pairs(self.random.randrange(0, 3), depth, top=False)
        device = [f"{{ bool {c} = {condition}; u32 {yes} = __ballot_sync(m, {c}), {before} = m;", f"if ({c}) {{ u32 m = {yes};", *d1,
                  f"}} else {{ u32 m = {before} & ~{yes};", *d2, "} __syncwarp(m); }"]  # fmt: skip
        host = [f"{{ auto {before} = b.on; auto {c} = b.where([&]{SIGNATURE} {{ u32 lane = t & 31; (void)lane; return {condition}; }});",
                f"b.on = both_of({before}, {c}, false);", *h1, f"b.on = both_of({before}, {c}, true);", *h2, f"b.on = {before}; }}"]  # fmt: skip
        return device, host

    def _while(self, depth: int, *, top: bool) -> Pair:
        condition = self.expressions.condition(2)
        i, before, c, yes = self._fresh("i"), self._fresh("before"), self._fresh("c"), self._fresh("yes")
        trips = self.random.randrange(2, 7)
        d, h = self.pairs(self.random.randrange(1, 4), depth, top=False)
        outer = self._fresh("outer")
        device = [f"{{ const u32 {outer} = m; u32 m = {outer};", f"for (u32 {i} = 0; {i} < {trips}; {i}++) {{",
                  f"bool {c} = {condition}; u32 {yes} = __ballot_sync(m, {c}); if (!{c}) break; m = {yes};", *d, f"}} __syncwarp({outer}); }}"]  # fmt: skip
        host = [f"{{ auto {before} = b.on;", f"for (u32 {i} = 0; {i} < {trips} && !nobody(b.on); {i}++) {{",
                f"auto {c} = b.where([&]{SIGNATURE} {{ u32 lane = t & 31; (void)lane; return {condition}; }}); b.on = both_of(b.on, {c}, false);",
                *h, f"}} b.on = {before}; }}"]  # fmt: skip
        return device, host

    def _repeat(self, depth: int, *, top: bool) -> Pair:
        i = self._fresh("i")
        d, h = self.pairs(self.random.randrange(1, 4), depth, top=top)
        head = (
            f"for (u32 {i} = 0; {i} < {self.random.choice(['2', '(number & 3u) + 1u', '(seed & 1u) + 2u'])}; {i}++) {{"
        )
        return [head, *d, "}"], [head, *h, "}"]

    def _uniform_if(self, depth: int, *, top: bool) -> Pair:
        head = f"if ({self.shared_expressions.condition(1)}) {{"
        d1, h1 = self.pairs(self.random.randrange(1, 4), depth, top=top)
        d2, h2 = self.pairs(1, depth, top=top)
        return [head, *d1, "} else {", *d2, "}"], [head, *h1, "} else {", *h2, "}"]

    def _exchange(self) -> Pair:
        if self.whole and self.random.random() < 0.3:
            return self._apply(self.random.choice(WHOLE))
        source, to = self.random.choice(_REGISTERS), self.random.choice(_REGISTERS)
        n = self.threads
        t, array, f = self.random.choice([
            ("u32", "shared", "{i}"), ("u8", "bytes", "{i}"), ("u16", "halves", "{i}"), ("u64", "wides", "{i}"),
            ("u32", "tile", "({i}) / 8][({i}) % 8"), ("u32", "dynamic", "{i}"), ("s8", "bytes", f"{n} - 1 - ({{i}})"),
        ])  # fmt: skip
        offset = self.random.randrange(n)
        read = self.random.choice(
            [f"(t + {offset}u) % {n}u", f"({self.expressions.make('u32', 1)}) % {n}u", f"{n - 1}u - t"]
        )
        cell = f"{array}[{f}]"
        store = f"{cell.format(i='t')} = {t}({source});"
        load = f"{to} = {to} * 3u + u32({t}({cell.format(i=read)}));"
        device = [store, "__syncthreads();", load, "__syncthreads();"]
        host_cell = "kept[{i}]" if array != "bytes" or t == "u8" else f"kept[{n} - 1 - ({{i}})]"
        host = [f"{{ std::vector<{t}> kept({n});", self._each(f"{host_cell.format(i='t')} = {t}({source});"),
                self._each(f"{to} = {to} * 3u + u32({host_cell.format(i=read)});"), "}"]  # fmt: skip
        return device, host

    def _count(self) -> Pair:
        condition = self.expressions.condition(1)
        how = self.random.choice(["count", "and", "or"])
        to = self.random.choice(_REGISTERS)
        result = {"count": "n", "and": f"u32(n == {self.threads})", "or": "u32(n != 0)"}[how]
        update = f"{to} += {{}} * 7u;"
        call = f"__syncthreads_{how}({condition})"
        device = [update.format(f"u32({call})" if how == "count" else f"u32({call} != 0)")]
        host = [f"{{ auto c = b.where([&]{SIGNATURE} {{ u32 lane = t & 31; (void)lane; return {condition}; }}); u32 n = 0; for (char i : c) n += i;",
                self._each(update.format(result)), "}"]  # fmt: skip
        return device, host

    def _shared_atomics(self) -> Pair:
        device_form, host_form = self.random.choice(_ATOMICS)
        value, to = self.expressions.make("u32", 1), self.random.choice(_REGISTERS)
        where = self.random.choice(["0u", "t & 1u", f"({self.expressions.make('u32', 1)}) & 1u"])
        call = device_form.format(v=f"({value})", **{k: f"part[slot].{p}" for k, p in _PLACES.items()})
        same = host_form.format(v=f"({value})", **{k: f"part[slot].{p}" for k, p in _PLACES.items()})
        result = f"{to} ^= u32(part[lane & 1u].q[0] >> 3) + part[0].w[t % 11u] + u32(part[1].q[t & 3u]) + u32(part[0].f) + u32(word(part[1].d) >> 30);"
        device = ["if (t == 0) part[0] = part[1] = Accumulator();", "__syncthreads();", f"{{ u32 slot = {where}; {call}; }}",
                  "__syncthreads();", result, "__syncthreads();"]  # fmt: skip
        host = ["{ Accumulator part[2] = {};", self._each(f"u32 slot = {where}; {same};"), self._each(result), "}"]
        return device, host


def kernel(random: Random, operations: list[Operation], name: str) -> str:
    return written(Collective(random, operations, name), STATEMENTS)


def written(c: Collective, statements: int) -> str:
    """A kernel, its simulation, and a test that compares registers and accumulators."""
    random, name = c.random, c.name
    device, host = c.pairs(statements, 3, top=True)
    n, blocks = c.threads, c.blocks
    # Threads may be counted in one dimension or in two.
    shape, index = (f"dim3({n})", "threadIdx.x")
    if n % 4 == 0 and random.random() < 0.4:
        shape, index = f"dim3(4, {n // 4})", "threadIdx.x + 4 * threadIdx.y"
    last = 0 if n % 32 == 0 else (1 << n % 32) - 1
    mask = f"t / 32 == {n // 32}u ? 0x{last:x}u : 0xffffffffu" if last else "0xffffffffu"
    start = "x0 = in[t] ^ number; x1 = t * 3u; x2 = seed; x3 = in[t] >> 7;"
    lines = [
        f"__global__ void kernel_{name}(const u32 *in, u32 *out, Accumulator *sum, u32 seed) {{",
        f"__shared__ u32 shared[{n}], tile[{(n + 7) // 8}][8]; __shared__ u8 bytes[{n}]; __shared__ u16 halves[{n}]; __shared__ u64 wides[{n}];",
        "__shared__ Accumulator part[2]; extern __shared__ u32 dynamic[];",
        "(void)shared, (void)tile, (void)bytes, (void)halves, (void)wides, (void)part, (void)dynamic;",
        f"const u32 t = {index}, lane = t & 31, number = blockIdx.x; const u32 m = {mask}; (void)lane; (void)m;",
        "u32 x0, x1, x2, x3;", start, *device,
        f"out[0 * {n} * gridDim.x + number * {n} + t] = x0; out[1 * {n} * gridDim.x + number * {n} + t] = x1;",
        f"out[2 * {n} * gridDim.x + number * {n} + t] = x2; out[3 * {n} * gridDim.x + number * {n} + t] = x3;", "}",
        f"static int test_{name}() {{",
        f"const u32 seed = {random.getrandbits(32)}u;",
        f"Array<u32> in({n}, [](size_t i) {{ return edge(i + {random.getrandbits(20)}); }}), out({4 * n * blocks}); Array<Accumulator> total(4);",
        f"kernel_{name}<<<{blocks}, {shape}, {4 * n}>>>(in.device, out.device, total.device, seed);",
        "CHECK(cudaGetLastError());", "CHECK(cudaDeviceSynchronize());",
        f"for (u32 number = 0; number < {blocks}; number++) {{ Block b({n}, number); const u32 *const in_ = in.host.data(); Accumulator *sum = total.host.data(); (void)sum;",
        f"b.each([&]{SIGNATURE} {{ {start.replace('in[', 'in_[')} }});", *host,
        f"for (int r = 0; r < 4; r++) for (u32 t = 0; t < {n}; t++) out.host[r * {n * blocks} + number * {n} + t] = b.x[r][t]; }}",
        f'return out.differences("{name}") + total.differences("{name} (atomics)");', "}",
    ]  # fmt: skip
    return "\n".join(lines)
