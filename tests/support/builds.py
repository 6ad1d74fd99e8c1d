"""Programs that are built for both engines, and what their messages must not hold."""

from collections.abc import Mapping
from pathlib import Path

from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine, Gpu
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.toolkit import find_toolkit


def project(folder: Path, files: Mapping[str, str]) -> Path:
    """Writes the files below `folder`, by name."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def engine(name: str) -> Engine:
    """The GPU's compiles where there is no GPU, too."""
    gpu = Gpu(0, "GPU-none", "a GPU of the tests", "580", (8, 0), 1 << 30)
    return EmulatorEngine(find_toolkit(), "sm_80") if name == "emulator" else CudaEngine(find_toolkit(), gpu)


def foreign(text: str) -> list[str]:
    """Lines of `text` with a folder or a name in them that only the grader knows."""
    signs = ("/tmp", "tmpxft", ".grader-", "builds/", "/source", "unit0", "m0_")
    return [line for line in text.splitlines() if any(sign in line for sign in signs)]
