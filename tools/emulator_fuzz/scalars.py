"""Functions of one thread: arithmetic of all types, control flow, local memory, calls. The same C++ runs on the host."""

from __future__ import annotations

from random import Random

from tools.emulator_fuzz.catalogue import FLOATS, INTEGERS, TYPES, Operation

FIELDS = {"u64": "a", "s64": "b", "f64": "c", "f32": "d", "u32": "e", "s32": "f", "u16": "g", "s16": "h", "u8": "i", "s8": "j"}  # fmt: skip
BINARY = ("add", "sub", "mul", "quotient", "remainder_", "both_bits", "any_bits", "odd_bits", "left", "right", "smaller", "larger")  # fmt: skip
UNARY = ("complement", "negative", "magnitude")
STATEMENTS = 14
_DEEPEST_LOOP = 2
BUFFER_BYTES = 64
ARRAY_WORDS = 16

PRELUDE = """
struct Values { u64 a; s64 b; f64 c; f32 d; u32 e; s32 f; u16 g; s16 h; u8 i; s8 j; u8 odd[6]; };
struct Three { u8 b[3]; };
struct Output { u64 hash; u64 q[2]; u32 w[2]; u16 h[4]; u8 b[8]; Three t[5]; u8 rest; };
typedef u32 (*Function)(u32, u32);
inline Values values(u64 i) {
    u64 x[8];
    for (int k = 0; k < 8; k++) x[k] = edge(8 * i + k);
    Values v;
    memcpy(&v, x, sizeof v);
    return v;
}
"""


class Expressions:
    """Writes random expressions over the variables in scope."""

    def __init__(self, random: Random, operations: list[Operation], variables: dict[str, str]) -> None:
        self.random = random
        self.operations = {t: [o for o in operations if o.result == t] for t in TYPES}
        self.variables = variables

    def make(self, t: str, depth: int) -> str:
        """An expression of type `t`."""
        if depth <= 0 or self.random.random() < 0.1:
            return self.leaf(t)
        kind = self.random.random()
        if kind < 0.45:
            return self._operation(t, depth)
        if kind < 0.75 and t in INTEGERS:
            if self.random.random() < 0.15:
                return f"{self.random.choice(UNARY)}<{t}>({self.make(t, depth - 1)})"
            name = self.random.choice(BINARY)
            return f"{name}<{t}>({self.make(t, depth - 1)}, {self.make(t, depth - 1)})"
        if kind < 0.85:
            return f"({self.condition(depth - 1)} ? {self.make(t, depth - 1)} : {self.make(t, depth - 1)})"
        return f"to<{t}>({self.make(self.random.choice(INTEGERS), depth - 1)})"

    def _operation(self, t: str, depth: int) -> str:
        if not self.operations[t]:
            return self.leaf(t)
        operation = self.random.choice(self.operations[t])
        return f"{operation.name}({', '.join(self.make(a, depth - 1) for a in operation.arguments)})"

    def leaf(self, t: str) -> str:
        names = [name for name, type_ in self.variables.items() if type_ == t]
        if names and self.random.random() < 0.7:
            return self.random.choice(names)
        if self.random.random() < 0.5:
            return self.constant(t)
        integers = [name for name, type_ in self.variables.items() if type_ in INTEGERS]
        return f"to<{t}>({self.random.choice(integers)})"

    def constant(self, t: str) -> str:
        if t in FLOATS:
            return f"{t}({self.random.choice(['0.0', '-0.0', '1.0', '-1.5', '0.1', '1e30', '3e-39', '-2147483648.0', '255.5'])})"
        bits = int(t[1:])
        value = self.random.choice(
            [0, 1, 2, 7, 31, 100, (1 << bits) - 1, 1 << (bits - 1), self.random.getrandbits(bits)]
        )
        return f"{t}(0x{value & ((1 << bits) - 1):x}ull)"

    def condition(self, depth: int) -> str:
        kind = self.random.random()
        if depth > 0 and kind < 0.2:
            joint = self.random.choice(["&&", "||"])
            return f"({self.condition(depth - 1)} {joint} {self.condition(depth - 1)})"
        if kind < 0.3:
            return f"!({self.condition(depth - 1)})"
        t = self.random.choice(TYPES)
        sign = self.random.choice(["<", "<=", "==", "!=", ">", ">="])
        if t in INTEGERS and self.random.random() < 0.4:
            return f"({self.make(t, depth - 1)} & {self.random.choice([1, 2, 3, 5, 12])}) {sign} {self.random.randrange(4)}"
        return f"({self.make(t, depth - 1)} {sign} {self.make(t, depth - 1)})"


class Body:
    """Writes the statements of one function that works on `variables`, with arrays `buffer` and `array`."""

    def __init__(self, random: Random, operations: list[Operation], mutable: dict[str, str], fixed: dict[str, str], helpers: list[str]) -> None:  # fmt: skip
        self.random = random
        self.mutable = mutable
        self.expressions = Expressions(random, operations, {**mutable, **fixed})
        self.helpers = helpers
        self.loops = 0
        self.labels = 0

    def block(self, count: int, depth: int, loops: int, labels: tuple[str, ...] = ()) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            lines += self.statement(depth, loops, labels)
        return lines

    def statement(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        simple = [self._assign, self._assign, self._assign, self._store, self._load, self._index, self._call]
        if depth <= 0 or self.random.random() < 0.55:
            return [self.random.choice(simple)()]
        if loops and self.random.random() < 0.25:
            jump = self.random.choice(["break", "continue"])
            return [f"if ({self.condition()}) {jump};"]
        if labels and self.random.random() < 0.15:
            return [f"if ({self.condition()}) goto {self.random.choice(labels)};"]
        kinds = [self._if, self._if, self._switch, self._return, self._goto]
        if self.loops_allowed(loops):
            kinds += [self._for, self._while, self._do]
        return self.random.choice(kinds)(depth - 1, loops, labels)

    @staticmethod
    def loops_allowed(loops: int) -> bool:
        return loops < _DEEPEST_LOOP

    def condition(self) -> str:
        return self.expressions.condition(self.random.randrange(1, 3))

    def _target(self) -> tuple[str, str]:
        return self.random.choice(sorted(self.mutable.items()))

    def _assign(self) -> str:
        name, t = self._target()
        return f"{name} = {self.expressions.make(t, self.random.randrange(1, 4))};"

    def _store(self) -> str:
        t = self.random.choice(TYPES)
        how = self.random.choice(["poke", "poke_aligned"])
        where = self.expressions.make("u32", 1)
        return f"{how}<{t}>(buffer, {where} % {BUFFER_BYTES - 7}u, {self.expressions.make(t, 2)});"

    def _load(self) -> str:
        name, t = self._target()
        how = self.random.choice(["peek", "peek_aligned"])
        return f"{name} = {how}<{t}>(buffer, {self.expressions.make('u32', 1)} % {BUFFER_BYTES - 7}u);"

    def _index(self) -> str:
        element = f"array[{self.expressions.make('u32', 1)} % {ARRAY_WORDS}u]"
        if self.random.random() < 0.5:
            return f"{element} = {self.expressions.make('u32', 2)};"
        name, t = self._target()
        return f"{name} = {t}({element});"

    def _call(self) -> str:
        if not self.helpers:
            return self._assign()
        name, t = self._target()
        first, second = self.expressions.make("u32", 1), self.expressions.make("u32", 1)
        kind = self.random.random()
        if kind < 0.4:
            return f"{name} = {t}({self.random.choice(self.helpers)}({first}, {second}));"
        if kind < 0.7:
            count = len(self.helpers)
            return f"{{ Function table[{count}] = {{{', '.join(self.helpers)}}}; {name} = {t}(table[({first}) % {count}u]({first}, {second})); }}"
        field = self.random.choice([k for k, f in FIELDS.items() if k in INTEGERS])
        return f"{{ Values copy = changed(in, {first}, {second}); {name} = {t}(copy.{FIELDS[field]}); }}"

    def _if(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        lines = [f"if ({self.condition()}) {{", *self.block(self.random.randrange(1, 4), depth, loops, labels)]
        if self.random.random() < 0.6:
            lines += ["} else {", *self.block(self.random.randrange(1, 3), depth, loops, labels)]
        return [*lines, "}"]

    def _for(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        self.loops += 1
        i = f"i{self.loops}"
        end = self.random.choice([str(self.random.randrange(1, 9)), f"({self.expressions.make('u32', 1)} & 7u)"])
        body = self.block(self.random.randrange(1, 4), depth, loops + 1, labels)
        unroll = self.random.choice(["", "#pragma unroll 1\n", "#pragma unroll\n"]) if end.isdigit() else ""
        return [f"{unroll}for (u32 {i} = 0; {i} < {end}; {i}++) {{", f"hash = mixed(hash, {i});", *body, "}"]

    def _while(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        self.loops += 1
        fuel = f"fuel{self.loops}"
        body = self.block(self.random.randrange(1, 4), depth, loops + 1, labels)
        return [f"{{ s32 {fuel} = {self.random.randrange(2, 10)};", f"while ({fuel}-- > 0 && {self.condition()}) {{", *body, "} }"]  # fmt: skip

    def _do(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        self.loops += 1
        fuel = f"fuel{self.loops}"
        body = self.block(self.random.randrange(1, 4), depth, loops + 1, labels)
        return [f"{{ u64 {fuel} = {self.random.randrange(2, 10)};", "do {", *body, f"}} while (--{fuel} != 0 && {self.condition()}); }}"]  # fmt: skip

    def _switch(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        cases = self.random.randrange(3, 7)
        lines = [f"switch ({self.expressions.make('u32', 2)} % {cases + 1}u) {{"]
        for case in range(cases):
            # A switch in a loop must not hold a `break` or `continue` of its own accord, so it counts as no loop.
            lines += [f"case {case}:", *self.block(self.random.randrange(1, 3), depth - 1, 0, labels)]
            lines += ["break;"] if self.random.random() < 0.7 else []
        return [*lines, "default:", *self.block(1, depth - 1, 0, labels), "}"]

    def _return(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        return [f"if ({self.condition()}) {{", *self.block(1, 0, loops, labels), "goto out; }"]

    def _goto(self, depth: int, loops: int, labels: tuple[str, ...]) -> list[str]:
        """A block that can be left by a jump from inside its loops."""
        self.labels += 1
        label = f"past{self.labels}"
        return ["{", *self.block(self.random.randrange(2, 4), depth, loops, (*labels, label)), "}", f"{label}:;"]


def helper(random: Random, operations: list[Operation], name: str, others: list[str]) -> str:
    """A function of two numbers that is not inlined; some call themselves, at most `first & 3` deep."""
    expressions = Expressions(random, operations, {"first": "u32", "second": "u32"})
    recursive = random.random() < 0.4
    lines = [f"HD __noinline__ u32 {name}(u32 first, u32 second) {{"]
    if recursive:
        lines += [
            f"if ((first & 3u) != 0) second += {name}((first & ~3u) | ((first & 3u) - 1u), {expressions.make('u32', 2)});"
        ]
    if others and random.random() < 0.3:
        lines += [f"if ({expressions.condition(1)}) return {random.choice(others)}(second & ~3u, first);"]
    lines += [
        f"if ({expressions.condition(1)}) return {expressions.make('u32', 2)};",
        f"return {expressions.make('u32', 3)};",
        "}",
    ]
    return "\n".join(lines)


def changed(random: Random, operations: list[Operation]) -> str:
    """A function that takes and returns a struct by value."""
    variables = {"first": "u32", "second": "u32", **{f"v.{f}": t for t, f in FIELDS.items() if t in INTEGERS}}
    expressions = Expressions(random, operations, variables)
    lines = ["HD __noinline__ Values changed(Values v, u32 first, u32 second) {"]
    for t in random.sample(INTEGERS, 3):
        lines.append(f"if ({expressions.condition(1)}) v.{FIELDS[t]} = {expressions.make(t, 2)};")
    return "\n".join([*lines, "v.odd[first % 6u] ^= u8(second);", "return v;", "}"])


def function(random: Random, operations: list[Operation], name: str, helpers: list[str]) -> str:
    """`name(in, all, t, out)`: from a thread's own values, those of all threads, and its number, to its output."""
    mutable = {f"v{i}": random.choice(TYPES) for i in range(random.randrange(4, 9))}
    fixed = {"t": "u32"}
    fixed |= {f"in.{f}": t for t, f in FIELDS.items()} | {
        f"all.{f}": t for t, f in FIELDS.items() if random.random() < 0.5
    }
    body = Body(random, operations, mutable, fixed, helpers)
    start = Expressions(random, operations, fixed)
    lines = [f"HD void {name}(const Values &in, const Values &all, u32 t, Output &out) {{"]
    lines += [f"alignas(16) u8 buffer[{BUFFER_BYTES}];", f"u32 array[{ARRAY_WORDS}];", "u64 hash = t;"]
    lines += [f"{t} {v} = {start.leaf(t)};" for v, t in mutable.items()]
    lines += [f"for (u32 i = 0; i < {BUFFER_BYTES}u; i++) buffer[i] = u8(i * 37u + t);"]
    lines += [f"for (u32 i = 0; i < {ARRAY_WORDS}u; i++) array[i] = in.e + i * all.e;"]
    lines += ["{", *body.block(STATEMENTS, 3, 0), "}", "out:;"]
    lines += [f"hash = mixed(hash, u64(word({v})));" for v in mutable]
    lines += [f"for (u32 i = 0; i < {BUFFER_BYTES}u; i += 8) hash = mixed(hash, peek<u64>(buffer, i));"]
    lines += [f"for (u32 i = 0; i < {ARRAY_WORDS}u; i++) hash = mixed(hash, array[i]);", "out.hash = hash;"]
    names = sorted(mutable)
    for place in ("q[0]", "q[1]", "w[0]", "w[1]", "h[0]", "h[3]", "b[1]", "b[6]", "t[1].b[2]", "t[4].b[0]"):
        lines.append(f"out.{place} = decltype(out.{place} + 0)(word({random.choice(names)}));")
    lines += ["out.h[1] = u16(hash), out.t[2] = Three{{u8(hash), u8(hash >> 8), out.b[1]}};"]
    return "\n".join([*lines, "}"])


def kernel(random: Random, name: str) -> str:
    """A kernel that runs function `name` for each thread of a random grid, and the host's side of it."""
    block = random.choice(
        [(32, 1, 1), (33, 1, 1), (64, 1, 1), (100, 1, 1), (7, 9, 1), (16, 8, 1), (5, 4, 3), (8, 8, 2), (1, 31, 2)]
    )
    grid = random.choice([(1, 1, 1), (3, 1, 1), (2, 2, 1), (2, 1, 2), (1, 3, 1)])
    threads = block[0] * block[1] * block[2] * grid[0] * grid[1] * grid[2]
    count = threads - random.choice([0, 0, 1, 17])
    seed = random.getrandbits(30)
    return f"""
__global__ void kernel_{name}(const Values *in, Values all, Output *out, u32 count) {{
    u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    u32 t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * (threadIdx.z + blockDim.z * block));
    if (t >= count) return;
    {name}(in[t], all, t, out[t]);
}}
static int test_{name}() {{
    const u32 count = {count};
    Array<Values> in(count, [](size_t i) {{ return values({seed} + i); }});
    Array<Output> out(count);
    Values all = values({seed + 12345});
    kernel_{name}<<<dim3{block}, dim3({grid[0]}, {grid[1]}, {grid[2]})>>>(in.device, all, out.device, count);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (u32 t = 0; t < count; t++) {name}(in.host[t], all, t, out.host[t]);
    return out.differences("{name}");
}}
"""
