"""Each operation by itself: on values of a thread, on values all threads share, on values that grow with the thread."""

from __future__ import annotations

from random import Random

from tools.emulator_fuzz.catalogue import INTEGERS, Operation
from tools.emulator_fuzz.scalars import BINARY, FIELDS, UNARY

PARTS = 8
THREADS = 352
_INTEGER_ONLY = [Operation(f"{name}<{t}>", t, (t, t)) for t in INTEGERS for name in BINARY]
_INTEGER_ONLY += [Operation(f"{name}<{t}>", t, (t,)) for t in INTEGERS for name in UNARY]
_CONVERSIONS = [Operation(f"to<{t}>", t, (s,)) for t in INTEGERS for s in INTEGERS if s != t]


def part(operations: list[Operation], number: int) -> list[Operation]:
    """Every eighth operation."""
    return [*operations, *_INTEGER_ONLY, *_CONVERSIONS][number % PARTS :: PARTS]


def kernel(random: Random, operations: list[Operation], name: str) -> str:
    """A kernel that stores the result of each operation, and a test that names the operation that differs."""

    def call(operation: Operation, sources: str) -> str:
        values = []
        for i, t in enumerate(operation.arguments):
            source = random.choice(sources)
            if source == "t" and t in INTEGERS:
                values.append(f"to<{t}>({random.choice(['t', f't * {random.randrange(2, 9)}u + all.e', 'all.e - t'])})")
            else:
                values.append(f"{'all' if source == 'u' else ('in', 'other', 'third', 'fourth')[i]}.{FIELDS[t]}")
        return f"u64(word({operation.name}({', '.join(values)})))"

    calls = [(o, call(o, sources)) for o in operations for sources in ("v", "u", "tvu")]
    stores = "\n".join(f"    out[{i} * {THREADS} + t] = {text};" for i, (_, text) in enumerate(calls))
    names = ", ".join(f'"{text[9:-2]}"' for _, text in calls)
    return f"""
HD inline void {name}(const Values &in, const Values &other, const Values &third, const Values &fourth, const Values &all, u32 t, u64 *out) {{
{stores}
}}
__global__ void kernel_{name}(const Values *in, Values all, u64 *out) {{
    u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    {name}(in[t], in[(t + 1) % {THREADS}], in[t * 3 % {THREADS}], in[t / 2], all, t, out);
}}
static int test_{name}() {{
    const char *const names[] = {{{names}}};
    Array<Values> in({THREADS}, [](size_t i) {{ return values({random.getrandbits(30)} + i); }});
    Array<u64> out({len(calls) * THREADS});
    Values all = values({random.getrandbits(30)});
    kernel_{name}<<<{THREADS // 32}, 32>>>(in.device, all, out.device);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (u32 t = 0; t < {THREADS}; t++) {name}(in.host[t], in.host[(t + 1) % {THREADS}], in.host[t * 3 % {THREADS}], in.host[t / 2], all, t, out.host.data());
    return out.differences("{name}", {THREADS}, names);
}}
"""
