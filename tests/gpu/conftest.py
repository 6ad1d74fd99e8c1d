"""These tests need an NVIDIA GPU: run them with `pytest tests/gpu` on a CUDA machine. Without one they fail."""

import pytest

from grader.programs.engine import select_engine
from grader.programs.engine.cuda import CudaEngine


@pytest.fixture(scope="session")
def gpu() -> CudaEngine:
    engine = select_engine("cuda", "sm_80")
    assert isinstance(engine, CudaEngine)
    return engine
