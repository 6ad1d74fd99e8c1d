"""These tests need an NVIDIA GPU: run them with `pytest tests/gpu -n 6 --dist worksteal` on a CUDA machine. Without
one they fail.

Most ask for verdicts, not for precise times, and run side by side: together they hold the lock that graders take
(grader/gpu/lock.py), and their own graders take another one. Tests with the fixture `timed` come last: there, graders
take the lock, and so have the GPU to themselves. Tests with `alone` hold it from beginning to end.
"""

import fcntl
import math
import os
import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from emulator.tests.programs import only_one
from grader.course.assignment import TimingRules
from grader.gpu import idle, lock
from grader.grading import one_test, probing
from grader.grading.bench import Bench
from grader.programs import oracle
from grader.programs.engine import select_engine
from grader.programs.engine.cuda import CudaEngine
from grader.timing import evidence, measurement


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each process begins with its share of the tests that run side by side. Neighbours of a file, which need the same
    builds and testcases, are shuffled, or processes would wait for them together."""
    random.Random(0).shuffle(items)
    ordered = sorted(items, key=_is_last)
    for item in filter(_is_last, items):
        item.add_marker(pytest.mark.timeout(900))  # they wait for each other
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = [item for worker in reversed(range(workers)) for item in ordered[worker::workers]]


def _is_last(item: pytest.Item) -> bool:
    return not {"timed", "alone"}.isdisjoint(getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def gpu() -> CudaEngine:
    engine = select_engine("cuda", "sm_80")
    assert isinstance(engine, CudaEngine)
    return engine


@pytest.fixture(autouse=True)
def _beside_others(
    request: pytest.FixtureRequest, gpu: CudaEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if _is_last(request.node):
        yield
        return
    with lock._opened(gpu.gpu.uuid) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        limits = one_test.time_limits
        monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
        monkeypatch.setattr(idle, "PATIENCE_S", 0.0)
        monkeypatch.setattr(one_test, "time_limits", lambda *given: (8 * (found := limits(*given))[0], *found[1:]))
        for limit in ("PROBE_LIMIT_S", "EXPERIMENTS_ON_A_GPU_S"):
            monkeypatch.setattr(probing, limit, 60.0)
        monkeypatch.setattr(evidence, "STARTUP_CPU_S", 15.0)  # processes that start CUDA together wait for each other
        monkeypatch.setattr(Bench, "is_timed", lambda bench, case: False)
        monkeypatch.setattr(Bench, "reference", lambda bench, case, wall_s: None)
        yield


@pytest.fixture
def timed(gpu: CudaEngine, monkeypatch: pytest.MonkeyPatch) -> CudaEngine:
    """The GPU, which graders have to themselves while they grade: expected outputs are not computed on it."""
    monkeypatch.setattr(oracle, "_WORTH_A_GPU_FLOPS", math.inf)
    return gpu


@pytest.fixture
def alone(gpu: CudaEngine) -> Iterator[CudaEngine]:
    """The GPU, which the test has to itself."""
    with lock.gpu_to_ourselves(gpu.gpu.uuid, print):
        yield gpu


@pytest.fixture
def hurried(timed: CudaEngine, monkeypatch: pytest.MonkeyPatch) -> CudaEngine:
    """As `timed`; a test's runs are repeated for half a second, where assignments ask for precise times."""
    decide = measurement.decide

    def soon(values: Sequence[float], spent_s: float, rule: TimingRules, warm_up: Sequence[float]) -> str:
        return decide(values, spent_s, rule.model_copy(update={"budget_s": 0.5}), warm_up)

    monkeypatch.setattr(measurement, "decide", soon)
    return timed


@pytest.fixture(scope="session")
def compiled(gpu: CudaEngine, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[..., Path]:
    """Compiles a source with flags of nvcc for this GPU, unless another process of these tests has."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "compiled"
    folder.mkdir(exist_ok=True)

    def executable(source: Path, *flags: str) -> Path:
        program = folder / f"{source.parent.name}-{source.stem}"
        with only_one(program):
            if not program.exists():
                target = f"-gencode=arch=compute_{gpu.gpu.architecture},code=sm_{gpu.gpu.architecture}"
                words = (gpu.toolkit.nvcc, "-O3", "-std=c++17", target, *flags, source, "-o", program)
                done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{source.name} does not compile: {done.stderr[-2000:]}"
        return program

    return executable
