"""Autograder for CUDA homework: builds, runs, checks, times and scores `.cu` programs."""

import os
import sys
from pathlib import Path

# In a checkout the emulator is the checkout's own, also if another one is installed, or if none is.
_EMULATOR = Path(__file__).resolve().parents[1] / "emulator/src"
if _EMULATOR.is_dir() and str(_EMULATOR) not in sys.path:
    sys.path.insert(0, str(_EMULATOR))

# numpy's BLAS reads these variables when it is imported, so they are set before anything else of the grader is. With
# more than one thread, OpenBLAS waits in fork() for products under way in other threads, and never wakes: grading forks
# for every run while a thread computes the next expected output. Heavy work has processes of its own
# (grader.base.workers).
ONE_BLAS_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
os.environ.update(ONE_BLAS_THREAD)
