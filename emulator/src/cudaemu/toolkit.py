"""Finds nvcc."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def find_nvcc() -> Path | None:
    """The first nvcc in $NVCC, PATH, $CUDA_HOME, $CUDA_PATH, the PyPI packages and /usr/local/cuda, in this order."""
    candidates = [os.environ.get("NVCC"), shutil.which("nvcc")]
    candidates += [f"{home}/bin/nvcc" for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    candidates += [*(str(root / "bin" / "nvcc") for root in pypi_roots()), "/usr/local/cuda/bin/nvcc"]
    return next((Path(each) for each in candidates if each and Path(each).is_file()), None)


def pypi_roots() -> tuple[Path, ...]:
    """The folders in which PyPI's packages put a toolkit. They are resolved, since a virtual environment may be reached
    through a link that does not exist in a sandbox."""
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    roots = (Path(folder) / "nvidia" / "cu13" for folder in sorted(filter(None, folders)))
    return tuple(root.resolve() for root in roots if root.is_dir())
