"""Finds the programs of the suites, and those of them that the emulator is meant to run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUITES = ("cuda-samples", "HeCBench", "PolyBench-GPU")
_SAMPLE_GROUPS = re.compile(r"[02356]_")
"""Introduction, concepts and techniques, CUDA features, domain-specific, performance (cuda-samples' README)."""
_OUT_OF_SCOPE = {
    "a library": re.compile(
        r"cublas|cufft|cusolver|cusparse|cudnn|\bnpp|nvjpeg|nvgraph|\bnccl|\bmpi\.h", re.IGNORECASE
    ),
    "NVRTC": re.compile(r"nvrtc", re.IGNORECASE),
    "processes that share memory": re.compile(r"cudaIpc|cuIpc|cuMemExportToShareableHandle"),
    "graphics": re.compile(r"GL/gl|glut|\begl\w*\.h|vulkan|d3d1|\bX11/|cudaGraphics|nvsci", re.IGNORECASE),
    "several GPUs": re.compile(r"cudaDeviceEnablePeerAccess|cudaMemcpyPeer|cudaLaunchCooperativeKernelMultiDevice"),
}
_TEXTS = {".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp", ".txt"}
_HECBENCH_RUN = re.compile(r"^run:.*\n(?:\t.*\\\n)*\t.*?\./\S+[ \t]*([^\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """One program of a suite, in `folder`; `out_of_scope` names the feature that it needs and that is out of scope."""

    name: str
    folder: Path
    arguments: tuple[str, ...] = ()
    out_of_scope: str = ""


def suite_of(root: Path) -> str:
    """The name of the suite at `root`; '' if it is unknown."""
    if (root / "Samples").is_dir():
        return "cuda-samples"
    if any((root / "src").glob("*-cuda")):
        return "HeCBench"
    return "PolyBench-GPU" if (root / "CUDA").is_dir() else ""


def programs_of(suite: str, root: Path) -> list[Program]:
    """The programs of a checkout, by name."""
    match suite:
        case "cuda-samples":
            folders = [folder for folder in root.glob("Samples/*/*") if _SAMPLE_GROUPS.match(folder.parent.name)]
        case "HeCBench":
            folders = list(root.glob("src/*-cuda"))
        case _:
            folders = [file.parent for file in root.glob("CUDA/**/*.cu")]
    return [_program(suite, folder) for folder in sorted(set(folders)) if any(folder.glob("**/*.cu"))]


def texts_in(folder: Path) -> Iterator[Path]:
    """Sources, headers and build files below a folder."""
    for path in sorted(folder.rglob("*")):
        if (path.suffix in _TEXTS or path.name == "Makefile") and path.is_file() and not path.is_symlink():
            yield path


def _program(suite: str, folder: Path) -> Program:
    text = "\n".join(path.read_text(errors="replace") for path in texts_in(folder))
    needs = next((what for what, pattern in _OUT_OF_SCOPE.items() if pattern.search(text)), "")
    arguments: tuple[str, ...] = ()
    makefile = folder / "Makefile"
    if suite == "HeCBench" and makefile.is_file():
        found = _HECBENCH_RUN.search(makefile.read_text(errors="replace"))
        arguments = tuple(shlex.split(found[1])) if found else ()
    return Program(folder.name, folder, arguments, needs)
