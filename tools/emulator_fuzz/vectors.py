"""Kernels whose blocks hand vectors of 8 and 16 bytes to each other, as decoupled look-back does: each thread waits for its
predecessor's vector to say that it is final. Before that its writer overwrites it again and again; half of one is counted."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tools.emulator_fuzz.catalogue import Operation
from tools.emulator_fuzz.scalars import Expressions


@dataclass(frozen=True)
class Access:
    """A way to store and load a vector: the suffix of st and ld, and `parts` of `type`, or one register if `word`."""

    store: str
    load: str
    type: str
    parts: int
    word: bool = False

    def functions(self, name: str) -> str:
        """store_NAME(at, parts) and load_NAME(at, parts)."""
        letter = "l" if self.type == "u64" else "r"
        registers = [f"%{i}" for i in range(self.parts)]
        vector, address = f"{{{', '.join(registers)}}}", f"[%{self.parts}]"
        store, load = f"st.{self.store} {address}, {vector};", f"ld.{self.load} {vector}, {address};"
        if self.word:
            store = f"{{ .reg .b128 t; mov.b128 t, {vector}; st.{self.store} {address}, t; }}"
            load = f"{{ .reg .b128 t; ld.{self.load} t, {address}; mov.b128 {vector}, t; }}"
        inputs = ", ".join(f'"{letter}"(x[{i}])' for i in range(self.parts))
        return f"""
__device__ inline void store_{name}({self.type} *at, const {self.type} *x) {{ asm volatile("{store}" :: {inputs}, "l"(at) : "memory"); }}
__device__ inline void load_{name}(const {self.type} *at, {self.type} *x) {{ asm volatile("{load}" : {inputs.replace('"' + letter, '"=' + letter)} : "l"(at) : "memory"); }}
"""


_ORDERS = (("relaxed.gpu", "relaxed.gpu"), ("relaxed.sys", "relaxed.sys"), ("release.gpu", "acquire.gpu"), ("volatile", "volatile"))  # fmt: skip
ACCESSES = tuple(
    Access(f"{store}{space}.v{parts}.{type_}", f"{load}{space}.v{parts}.{type_}", type_, parts)
    for store, load in _ORDERS
    for space in ("", ".global")
    for type_, parts in (("u64", 2), ("u32", 2), ("u32", 4))
) + tuple(
    Access(f"{store}{space}.b128", f"{load}{space}.b128", "u64", 2, word=True)
    for store, load in _ORDERS[:3]
    for space in ("", ".global")
)


def kernel(random: Random, operations: list[Operation], name: str) -> str:
    """A vector's first part is a number that is passed on and, in four bits, a stamp; the others follow from it. A stamp
    of `drafts` says that the number is final; the zeros before the first store agree with each other."""
    access = random.choice(ACCESSES)
    threads, blocks, rounds = random.choice([1, 7, 32, 33, 64, 96]), random.randrange(2, 9), random.randrange(1, 4)
    spread = random.choice([1, 1, 2, 3, 5])  # cells between those of neighbouring threads
    integer = [o for o in operations if all(t[0] in "us" for t in (o.result, *o.arguments))]
    expressions = Expressions(random, integer, {"v": "u64", "t": "u32", "block": "u32", "round": "u32"})
    drafts = random.choice(["3u", "15u", "1u + t % 15u", "1u + (t * 5u + block + round) % 15u"])
    again = random.choice([1, 20, 500])
    idle = expressions.condition(2) if random.random() < 0.5 else "false"
    order = random.choice(["k", f"{rounds - 1}u - k"])
    return f"""
{access.functions(name)}
typedef {access.type} Part_{name};
HD inline u32 drafts_{name}(u32 t, u32 block, u32 round) {{ return {drafts}; }}
HD inline bool idle_{name}(u64 v, u32 t, u32 block, u32 round) {{ return {idle}; }}
HD inline u64 next_{name}(u64 v, u32 t, u32 block, u32 round) {{ return {expressions.make("u64", 3)}; }}
HD inline Part_{name} part_{name}(Part_{name} first, u32 i) {{ return first * Part_{name}(0x9E3779B97F4A7C15ull * i) ^ first >> 7; }}
__device__ inline void hand_{name}(Part_{name} *at, u64 v, u32 stamp) {{
    Part_{name} x[{access.parts}] = {{Part_{name}(v) << 4 | stamp}};
    for (u32 i = 1; i < {access.parts}; i++) x[i] = part_{name}(x[0], i);
    store_{name}(at, x);
}}
__global__ void kernel_{name}(Part_{name} *cells, u64 *out, u32 *torn) {{
    const u32 t = threadIdx.x, block = blockIdx.x;
    u64 v = t * 77u;
    u32 bad = 0;
    __threadfence();
    for (u32 k = 0; k < {rounds}u; k++) {{
        const u32 round = {order};
        Part_{name} *const here = cells + ((round * {blocks}u + block) * {threads}u + t) * {access.parts * spread}u, *const before = here - {threads * access.parts * spread};
        if (block != 0) {{
            Part_{name} x[{access.parts}];
            do {{
                load_{name}(before, x);
                for (u32 i = 1; i < {access.parts}; i++) bad += x[i] != part_{name}(x[0], i);
            }} while (u32(x[0] & 15) != drafts_{name}(t, block - 1, round));
            v = v * 31 + (x[0] >> 4);
        }}
        if (!idle_{name}(v, t, block, round)) v = next_{name}(v, t, block, round);
        for (u32 again = 0; again < {again}u; again++)
            for (u32 stamp = 1; stamp < drafts_{name}(t, block, round); stamp++) hand_{name}(here, v * again + stamp * 12345u, stamp);
        hand_{name}(here, v, drafts_{name}(t, block, round));
    }}
    out[block * {threads}u + t] = v;
    if (bad) atomicAdd(torn, bad);
}}
static int test_{name}() {{
    Array<Part_{name}> cells({rounds * blocks * threads * access.parts * spread});
    Array<u64> out({blocks * threads});
    Array<u32> torn(1);
    kernel_{name}<<<{blocks}, {threads}>>>(cells.device, out.device, torn.device);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (u32 t = 0; t < {threads}u; t++) {{
        std::vector<u64> handed({rounds});
        for (u32 block = 0; block < {blocks}u; block++) {{
            u64 v = t * 77u;
            for (u32 k = 0; k < {rounds}u; k++) {{
                const u32 round = {order};
                if (block != 0) v = v * 31 + (Part_{name}(Part_{name}(handed[round]) << 4) >> 4);
                if (!idle_{name}(v, t, block, round)) v = next_{name}(v, t, block, round);
                handed[round] = v;
            }}
            out.host[block * {threads}u + t] = v;
        }}
    }}
    return out.differences("{name}") + torn.differences("{name} ({access.load}: torn)");
}}
"""
