"""The programs whose times were measured to calibrate and to test predicted times: name, assignment, source, flags.

`author` groups versions of one program: in a comparison by author they count once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    name: str
    assignment: str
    source: str
    flags: tuple[str, ...] = ()
    author: str = ""


def _styles() -> list[Program]:
    variants: dict[int, list[str]] = {
        1: ["TILE=16", "TILE=32", "TILE=64", "TILE=32 THREADS=64", "TILE=32 THREADS=32"],
        2: ["VECTOR=1", "VECTOR=4", "VECTOR=4 THREADS=64"],
        3: ["THREADS=128", "THREADS=256", "THREADS=32"],
        4: ["PAD=0", "PAD=1"],
        5: ["PAD=0", "PAD=1"],
        6: ["PAD=0", "PAD=1", "PAD=1 THREADS=256"],
        7: ["TILE=16", "TILE=32", "TILE=16 THREADS=64"],
        8: ["THREADS=128", "THREADS=256"],
        9: ["THREADS=64", "THREADS=128"],
    }
    return [
        Program(
            f"style{style}-{text.replace(' ', '-').replace('=', '').lower()}",
            "hw4",
            "benchmarks/estimates/attention_styles.cu",
            (f"-DSTYLE={style}", *(f"-D{word}" for word in text.split())),
            f"style{style}",
        )
        for style, texts in variants.items()
        for text in texts
    ]


def _files(assignment: str, folder: str, *names: str) -> list[Program]:
    return [Program(f"{assignment}/{name}", assignment, f"{folder}/{name}.cu", (), name) for name in names]


PROGRAMS: tuple[Program, ...] = (
    *_styles(),
    *_files("hw4", "reference/hw4", "naive", "tiled", "flash2", "tensor_cores"),
    *_files(
        "hw4",
        "tests/honest/programs",
        "float4",
        "large_shared_memory",
        "split_keys",
        "atomic_sums",
        "double_buffered",
        "persistent_kernel",
        "textures",
        "half_values",
        "bfloat16_in_three",
        "asynchronous_copies",
        "cooperative_groups",
        "kernel_for_each_batch",
        "many_streams",
        "two_passes_in_double",
        "constant_memory",
        "graph",
        "tiny_launches",
        "unusual_blocks",
    ),
    *_files("attention_naive", "reference/attention_naive", "naive", "tiled"),
    *_files("backward", "reference/backward", "rows", "tiled"),
    *_files("matmul", "reference/matmul", "naive", "patches", "tiled"),
    *_files("multihead", "reference/multihead", "rows", "tiled"),
    *_files("softmax", "reference/softmax", "coarsened", "naive", "online"),
    *_files("half", "reference/half", "naive", "mma"),
)
