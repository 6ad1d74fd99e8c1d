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
    solves: bool = False
    """Whether it defines `solve`, so that timer.cu can run it."""
    edits: tuple[tuple[str, str], ...] = ()
    """What replaces what in the source."""


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
            True,
        )
        for style, texts in variants.items()
        for text in texts
    ]


def _classmates() -> list[Program]:
    """More attention, in the ways that students write it."""
    variants: dict[int, list[str]] = {
        10: ["PAD=0", "PAD=1"],
        11: ["PAD=0", "PAD=1", "PAD=1 TILE=64"],
        12: ["PAD=0", "PAD=1"],
        13: ["PAD=0", "PAD=1", "PAD=1 THREADS=256", "PAD=1 THREADS=1024"],
        14: ["TILE=32", "TILE=32 FIXED=1", "TILE=64"],
        15: ["ROWS=1", "ROWS=2", "ROWS=1 THREADS=256 TILE=64", "ROWS=1 BARRIER=1", "ROWS=1 EXTRA=100000"],
        16: ["PAD=1", "PAD=1 STREAMS=8", "PAD=1 STREAMS=100"],
        17: ["PAD=0", "PAD=1"],
        18: ["TILE=32", "TILE=64"],
        19: ["PAD=0"],
        20: ["PAD=0", "PAD=4"],
        21: ["ROWS=4", "ROWS=2", "ROWS=8", "ROWS=4 PAD=1"],
        22: ["TILE=32"],
        23: ["ROWS=1"],
        24: ["THREADS=128", "THREADS=256"],
        25: ["TILE=32", "TILE=16"],
        26: ["PAD=0", "PAD=1 TILE=16"],
        27: ["ROWS=2", "ROWS=8"],
        28: ["TILE=32", "TILE=64", "TILE=64 PAD=1"],
        29: ["TILE=32"],
    }
    return [
        Program(
            f"style{style}-{text.replace(' ', '-').replace('=', '').lower()}",
            "hw4",
            "benchmarks/estimates/attention_classmates.cu",
            (f"-DSTYLE={style}", *(f"-D{word}" for word in text.split())),
            f"style{style}",
            True,
        )
        for style, texts in variants.items()
        for text in texts
    ]


_SMALL = {
    "saxpy": "saxpy_chunks saxpy_strided saxpy_launches saxpy_double saxpy_offset",
    "reduction": "reduction_interleaved reduction_atomics reduction_shared_atomics reduction_two_kernels",
    "histogram": "histogram_shared histogram_columns",
    "transpose": "transpose_unpadded transpose_read_columns transpose_wide",
    "grayscale": "grayscale_columns grayscale_shared",
    "convolution": "convolution_constant convolution_columns convolution_rows",
    "stencil3d": "stencil_columns stencil_cubes stencil_tile",
    "scan": "scan_tree scan_tree_padded scan_thread",
    "cross_entropy": "cross_entropy_threads cross_entropy_warps",
    "spmv": "spmv_warps",
    "sort": "sort_bitonic",
    "matmul": "matmul_columns matmul_rows matmul_tile16 matmul_tile16_extra matmul_conflicts matmul_padded "
    "matmul_blocked matmul_blocked4 matmul_double",
    "softmax": "softmax_threads softmax_warps softmax_registers",
}
_TRITON = {
    "saxpy": "blocks",
    "grayscale": "blocks",
    "histogram": "blocks",
    "reduction": "blocks",
    "scan": "three_kernels",
    "matmul": "grouped",
    "softmax": "online",
    "transpose": "tiles",
    "half": "flash",
}
_MODELS = {
    "saxpy": "naive vectors",
    "reduction": "naive vectors",
    "histogram": "naive warps",
    "transpose": "naive tiles",
    "grayscale": "naive words",
    "convolution": "naive tiles",
    "stencil3d": "naive columns",
    "scan": "naive reduce_then_scan",
    "cross_entropy": "naive online",
    "spmv": "naive balanced",
    "sort": "naive radix",
    "bfs": "naive frontier",
}


def _small() -> list[Program]:
    """Versions and model solutions of the assignments whose contract is `function`, and versions of two others."""
    versions = [
        Program(
            name,
            assignment,
            "benchmarks/estimates/small_programs.cu",
            (f"-DPROGRAM={name}", f"-DA_{assignment}"),
            name,
            True,
        )
        for assignment, names in _SMALL.items()
        for name in names.split()
    ]
    models = [
        Program(
            f"{assignment}/{name}", assignment, f"reference/{assignment}/{name}.cu", (), f"{assignment}/{name}", True
        )
        for assignment, names in _MODELS.items()
        for name in names.split()
    ]
    return versions + models


def _files(assignment: str, folder: str, *names: str) -> list[Program]:
    return [Program(f"{assignment}/{name}", assignment, f"{folder}/{name}.cu", (), name) for name in names]


def _triton() -> list[Program]:
    """The model solutions in Python. The names end in .py: two have a twin in CUDA."""
    return [
        Program(
            f"{assignment}/{name}.py", assignment, f"reference/{assignment}/{name}.py", (), f"{assignment}/{name}.py"
        )
        for assignment, name in _TRITON.items()
    ]


PROGRAMS: tuple[Program, ...] = (
    *_styles(),
    *_classmates(),
    *_small(),
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
    *_files("half", "reference/half", "naive", "mma", "hopper"),
    *_files("half_backward", "reference/half_backward", "naive"),
    *_files("hw4", "reference/hw4", "hopper"),
    *_triton(),
)

_PADDED = (
    ("3 * kTile * D + 2", "3 * kTile * D + kTile + 2"),
    ("k_tile[y * D + column]", "k_tile[y * (D + 1) + column]"),
    ("k[threadIdx.x * D + i]", "k[threadIdx.x * (D + 1) + i]"),
    ("k_tile + kTile * D", "k_tile + kTile * (D + 1)"),
)
_UNPADDED = {
    "attention_naive/tiled": (("b_tile[kTile][kTile + 1]", "b_tile[kTile][kTile]"),),
    "multihead/tiled": (("kPad = 4;", "kPad = 0;"),),
    "backward/tiled": (("kPad = 4;", "kPad = 0;"),),
}
EDITED = (
    Program("hw4/tiled+pad", "hw4", "reference/hw4/tiled.cu", (), "tiled", edits=_PADDED),
    *(
        Program(f"{name}-pad", name.split("/")[0], f"reference/{name}.cu", (), "tiled", edits=edits)
        for name, edits in _UNPADDED.items()
    ),
)
"""Model solutions with a line changed: they stand in pairs, not in the tables."""

_CONFLICTS, _COALESCED = "bank conflicts", "not coalesced"
PAIRS = (
    ("hw4/tiled", "hw4/tiled+pad", "t23 t05", _CONFLICTS),
    ("attention_naive/tiled-pad", "attention_naive/tiled", "t08 t10", _CONFLICTS),
    ("multihead/tiled-pad", "multihead/tiled", "t10 t15", _CONFLICTS),
    ("backward/tiled-pad", "backward/tiled", "t10 t14", _CONFLICTS),
    *((f"style{style}-pad0", f"style{style}-pad1", "t23 t05", _CONFLICTS) for style in (4, 5, 6, 10, 11, 12, 13, 17)),
    ("style28-tile64", "style28-tile64-pad1", "t23 t05", _CONFLICTS),
    ("matmul_conflicts", "matmul_padded", "t08 t05", _CONFLICTS),
    ("scan_tree", "scan_tree_padded", "t06 t05", _CONFLICTS),
    ("matmul_columns", "matmul_rows", "t08 t05", _COALESCED),
    ("transpose_read_columns", "transpose/tiles", "t06 t05", _COALESCED),
    ("transpose/naive", "transpose/tiles", "t06 t05", _COALESCED),
    ("convolution_columns", "convolution/naive", "t06 t05", _COALESCED),
    ("stencil_columns", "stencil3d/naive", "t05 t04", _COALESCED),
    ("grayscale_columns", "grayscale/naive", "t05 t04", _COALESCED),
    ("style14-tile32", "style14-tile32-fixed1", "t23 t05", "local memory"),
    ("style15-rows1-extra100000", "style15-rows1", "t23 t05", "occupancy"),
    ("style16-pad1", "style13-pad1", "t23 t05", "launches"),
)
"""(before, after, tests, fix): the second program has one fix that the advice on the first one names."""
