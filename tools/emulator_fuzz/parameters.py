"""Kernels with parameters of all sizes, up to all that a launch can pass: numbers, structures of any alignment, arrays."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tools.emulator_fuzz.catalogue import INTEGERS, Operation
from tools.emulator_fuzz.scalars import Expressions

MAX_BYTES = 32764  # of a kernel's parameters, CUDA 12.1 and later, sm_70 and later
_LIMITS = (1, 8, 16, 100, 255, 1000, 4080, 4096, 4104, 5000, 8192, 20000, MAX_BYTES)


@dataclass(frozen=True)
class Parameter:
    """A structure of an array: `count` numbers of `type`, aligned to `alignment`, then up to seven bytes."""

    type: str
    count: int
    alignment: int
    tail: int
    constant: bool  # __grid_constant__

    @property
    def bytes(self) -> int:
        size = self.count * int(self.type[1:]) // 8 + self.tail
        return -(-size // self.alignment) * self.alignment

    def declare(self, name: str) -> str:
        tail = f" u8 tail[{self.tail}];" if self.tail else ""
        return f"struct alignas({self.alignment}) {name} {{ {self.type} a[{self.count}];{tail} }};"


def parameters(random: Random) -> list[Parameter]:
    """As many parameters as fit behind two pointers within one of the limits."""
    limit, used = random.choice(_LIMITS), 16
    chosen: list[Parameter] = []
    while len(chosen) < 12:
        type_ = random.choice(INTEGERS)
        width = int(type_[1:]) // 8
        alignment = random.choice([a for a in (1, 2, 4, 8, 16, 32, 64) if a >= width])
        tail = random.choice([0, 0, 1, 3, 7])
        start = -(-used // alignment) * alignment
        room = min(limit + 16, MAX_BYTES) - start
        count = random.choice([1, random.randrange(1, 40), random.randrange(1, 2000), max(1, (room - tail) // width)])
        new = Parameter(type_, count, alignment, tail, constant=random.random() < 0.4)
        if new.bytes > room:
            if random.random() < 0.2:
                break
            continue
        chosen.append(new)
        used = start + new.bytes
    return chosen or [Parameter("u8", 1, 1, 0, constant=False)]


def kernel(random: Random, operations: list[Operation], name: str) -> str:
    """The same function of all parameters on device and host; the device's threads share the numbers between them."""
    chosen = parameters(random)
    threads, blocks = random.choice([1, 32, 33, 64, 100]), random.randrange(1, 4)
    names = [f"p{i}" for i in range(len(chosen))]
    types = [f"Parameter_{name}_{i}" for i in range(len(chosen))]
    firsts = {f"{n}.a[0]": p.type for n, p in zip(names, chosen, strict=True)}
    expressions = Expressions(random, operations, {"hash": "u64", "t": "u32", **firsts})
    lines: list[str] = []
    for n, p, type_ in zip(names, chosen, types, strict=True):
        lines += _reads(random, expressions, n, p, type_, threads * blocks)
    random.shuffle(lines)
    arguments = ", ".join(f"const {t} &{n}" for t, n in zip(types, names, strict=True))
    declared = ", ".join(f"{'const __grid_constant__ ' * p.constant}{t} {n}" for t, n, p in zip(types, names, chosen, strict=True))  # fmt: skip
    both = f"const u32 *in, u64 *out, {declared}"
    launches = random.choice([
        f"kernel_{name}<<<{blocks}, {threads}>>>({', '.join(['in.device', 'out.device', *names])});",
        f"void *all[] = {{&in.device, &out.device, {', '.join(f'&{n}' for n in names)}}}; CHECK(cudaLaunchKernel((const void *)kernel_{name}, dim3({blocks}), dim3({threads}), all, 0, 0));",
    ])  # fmt: skip
    newline = "\n"
    return f"""
{newline.join(p.declare(t) for p, t in zip(chosen, types, strict=True))}
HD inline u64 {name}(u32 t, u32 given, {arguments}) {{
u64 hash = t;
{newline.join(lines)}
return hash ^ given;
}}
__global__ void kernel_{name}({both}) {{
    const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = {name}(t, in[t], {", ".join(names)});
}}
static int test_{name}() {{
    Array<u32> in({threads * blocks}, [](size_t i) {{ return edge(i); }});
    Array<u64> out({threads * blocks});
{newline.join(f"    static {t} {n}; {_fill(random, n, p)}" for t, n, p in zip(types, names, chosen, strict=True))}
    {launches}
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (u32 t = 0; t < {threads * blocks}u; t++) out.host[t] = {name}(t, in.host[t], {", ".join(names)});
    return out.differences("{name}");
}}
"""


def _fill(random: Random, name: str, p: Parameter) -> str:
    tail = f" for (u32 i = 0; i < {p.tail}u; i++) {name}.tail[i] = u8(edge(i + {random.getrandbits(16)}));" if p.tail else ""  # fmt: skip
    return f"for (u32 i = 0; i < {p.count}u; i++) {name}.a[i] = {p.type}(edge(i + {random.getrandbits(20)}));{tail}"


def _reads(random: Random, expressions: Expressions, name: str, p: Parameter, type_: str, threads: int) -> list[str]:
    """A few ways to read a parameter: at fixed places, at computed ones, all of it, through a copy that changes."""
    at = f"({expressions.make('u32', 1)}) % {p.count}u"
    value = expressions.make(p.type, 1)
    fixed = random.randrange(p.count)
    ways = [
        f"hash = mixed(hash, u64({name}.a[{fixed}]));",
        f"hash = mixed(hash, u64({name}.a[{at}]));",
        f"for (u32 i = t; i < {p.count}u; i += {threads}u) hash = mixed(hash, u64({name}.a[i]));",
        f"for (u32 i = t % 7u; i < sizeof({type_}); i += {random.randrange(3, 90)}u) hash = mixed(hash, i < {p.count * int(p.type[1:]) // 8}u ? ((const u8 *)&{name})[i] : 0);",
    ]  # fmt: skip
    if p.bytes <= 512:
        ways.append(f"{{ {type_} copy = {name}; copy.a[{at}] = {value}; hash = mixed(hash, u64(copy.a[{at}])); hash = mixed(hash, u64(copy.a[{fixed}])); }}")  # fmt: skip
    if p.tail:
        ways.append(f"hash = mixed(hash, {name}.tail[t % {p.tail}u]);")
    return random.sample(ways, random.randrange(1, 4))
