"""Finds the CUDA toolkit: nvcc from PATH, an installed toolkit, or the packages from PyPI."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cudaemu.process import Completed
from cudaemu.toolkit import find_nvcc, pypi_roots
from grader import sandbox
from grader.base.errors import MachineFault
from grader.sandbox.scratch import scratch_folder

_CURAND = "curand_kernel.h"


@dataclass(frozen=True)
class Cupti:
    """The files needed to build and load a CUPTI client."""

    include: Path
    library: Path


@dataclass(frozen=True)
class Toolkit:
    """A usable nvcc. `root` holds include/ and lib*/; `version` is nvcc's own, such as V13.0.88."""

    nvcc: Path
    root: Path
    version: str

    @property
    def include(self) -> Path:
        return self.root / "include"

    @property
    def library_folders(self) -> tuple[Path, ...]:
        """The folders that hold cudart, for the linker: nvcc from PyPI does not look in its own lib/."""
        return tuple(folder for name in ("lib64", "lib") if (folder := self.root / name).is_dir())

    @property
    def added_headers(self) -> tuple[Path, ...]:
        """The folder of cuRAND's header-only device library, if the toolkit lacks it, as PyPI's nvcc does; else
        empty."""
        if (self.include / _CURAND).is_file():
            return ()
        return tuple(root / "include" for root in pypi_roots() if (root / "include" / _CURAND).is_file())[:1]

    @property
    def identity(self) -> str:
        """A text that changes with everything in the toolkit that a build depends on."""
        return f"nvcc {self.version}" + (" and cuRAND's headers" if self.added_headers else "")

    def tool(self, name: str) -> Path | None:
        """A program of the toolkit (ptxas, ncu, compute-sanitizer), from its bin/, PATH, or the packages from PyPI."""
        beside = self.root / "bin" / name
        if beside.is_file():
            return beside
        places = (shutil.which(name), *(str(root / "bin" / name) for root in pypi_roots()))
        return next((Path(place) for place in places if place and Path(place).is_file()), None)

    def cupti(self) -> Cupti | None:
        """CUPTI's headers and library: the toolkit's, or the nvidia-cuda-cupti package's."""
        for root in (self.root, *pypi_roots()):
            for extra in (root, root / "extras" / "CUPTI"):
                if not (extra / "include" / "cupti.h").is_file():
                    continue
                for library in (extra / "lib64", extra / "lib", root / "lib64", root / "lib"):
                    for name in ("libcupti.so", "libcupti.so.13", "libcupti.so.12"):
                        if (library / name).exists():
                            return Cupti(extra / "include", library / name)
        return None


@cache
def find_toolkit() -> Toolkit:
    """The toolkit of the nvcc that `cudaemu` finds. Raises MachineFault if there is none or if it does not run."""
    if nvcc := find_nvcc():
        return _toolkit(nvcc)
    raise MachineFault(
        "No CUDA compiler: nvcc is neither on PATH, nor in CUDA_HOME, nor installed from PyPI, nor in "
        "/usr/local/cuda. Run `make setup`, or `pip install 'cuda-homework-grader[cuda]'`, or install the CUDA "
        "toolkit 12 or 13."
    )


def _toolkit(nvcc: Path) -> Toolkit:
    said = _ask(nvcc, "--version")
    version = re.search(r"\bV(\d+\.\d+\.\d+)", said.output)
    if said.exit_code != 0 or version is None:
        raise MachineFault(f"{nvcc} --version failed: {said.output.strip()[:300] or 'no output'}; reinstall it.")
    return Toolkit(nvcc, _root(nvcc), version.group(0))


def _ask(nvcc: Path, *arguments: str) -> Completed:
    # A script called nvcc may start another program next to it, so the sandbox shows the folder of the link and
    # that of its target.
    shown = tuple({nvcc.parent, nvcc.resolve().parent.parent})
    with scratch_folder("nvcc") as folder:
        return sandbox.runner(60, readable=shown)([str(nvcc), *arguments], folder)


def _root(nvcc: Path) -> Path:
    """The folder that holds include/. nvcc on PATH may be a link or a script that calls the real nvcc."""
    near = nvcc.resolve().parent.parent
    if (near / "include" / "cuda_runtime.h").is_file():
        return near
    dry = _ask(nvcc, "--dryrun", "-x", "cu", "-c", "/dev/null")
    top = re.search(r"^#\$ TOP=(.+)$", dry.output, re.MULTILINE)
    return (nvcc.parent / top.group(1)).resolve() if top else near
