"""Filling a GPU's memory, and the helper that does it, with a driver that is a fake."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grader import gpu_memory
from grader.gpu_memory import BLOCK_BYTES, MARGIN_BYTES, PATTERN, Filled, Filler, fill_free_memory, serve

GIB = 1 << 30


@dataclass
class Block:
    address: int
    driver: Driver

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        del self.driver.allocated[self.address]


@dataclass
class Driver:
    """As much of pycuda.driver as is used. `largest`: no allocation above it can be had."""

    free: int
    total: int = 140 * GIB
    largest: int = 1 << 60
    refuses: bool = False
    contexts: int = 0
    allocated: dict[int, int] = field(default_factory=dict)
    written: dict[int, tuple[int, int]] = field(default_factory=dict)
    most: int = 0

    class Error(Exception):
        pass

    class MemoryError(Error):
        pass

    def init(self) -> None:
        pass

    @property
    def Context(self) -> Driver:
        return self

    def synchronize(self) -> None:
        assert self.contexts == 1

    def Device(self, ordinal: int) -> Driver:
        assert ordinal == 0
        return self

    def make_context(self) -> Driver:
        if self.refuses:
            raise self.Error("cuCtxCreate failed: out of memory")
        self.contexts += 1
        return self

    def pop(self) -> None:
        assert self.allocated == {}

    def detach(self) -> None:
        self.contexts -= 1

    def mem_get_info(self) -> tuple[int, int]:
        return self.free, self.total

    def mem_alloc(self, size: int) -> Block:
        if size > self.largest or sum(self.allocated.values()) + size > self.free:
            raise self.MemoryError("cuMemAlloc failed: out of memory")
        address = 1 + len(self.written) + len(self.allocated)
        self.allocated[address] = size
        self.most = max(self.most, sum(self.allocated.values()))
        return Block(address, self)

    def memset_d32(self, address: int, value: int, count: int) -> None:
        assert 4 * count == self.allocated[address]
        self.written[address] = (value, 4 * count)


def test_all_but_a_margin_is_filled_and_everything_is_given_back() -> None:
    driver = Driver(free=139 * GIB)
    found = fill_free_memory(driver, driver)
    assert found.filled == driver.most == 139 * GIB - MARGIN_BYTES
    assert (found.free, found.total) == (139 * GIB, 140 * GIB)
    assert {value for value, _ in driver.written.values()} == {PATTERN}
    assert sum(size for _, size in driver.written.values()) == found.filled
    assert max(size for _, size in driver.written.values()) == BLOCK_BYTES
    assert driver.contexts == 0 and driver.allocated == {}


def test_memory_in_pieces_is_filled_by_smaller_allocations() -> None:
    driver = Driver(free=4 * GIB, largest=300 << 20)
    assert fill_free_memory(driver, driver).filled == 4 * GIB - MARGIN_BYTES


@pytest.mark.parametrize("free", [0, MARGIN_BYTES, MARGIN_BYTES + (1 << 20)])
def test_a_full_gpu_is_left_alone(free: int) -> None:
    driver = Driver(free=free)
    found = fill_free_memory(driver, driver)
    assert found.filled == 0 and driver.written == {} and driver.contexts == 0
    assert "0.0 of 140.0 GiB filled" in found.sentence


def test_a_gpu_that_gives_no_memory_at_all_is_not_asked_for_ever() -> None:
    driver = Driver(free=8 * GIB, largest=0)
    assert fill_free_memory(driver, driver).filled == 0


def test_the_context_ends_also_when_writing_fails() -> None:
    class Failing(Driver):
        def memset_d32(self, address: int, value: int, count: int) -> None:
            raise self.Error("cuMemsetD32 failed: unspecified launch failure")

    driver = Failing(free=8 * GIB)
    with pytest.raises(Driver.Error):
        fill_free_memory(driver, driver)
    assert driver.contexts == 0 and driver.allocated == {}


def test_the_sentence_says_how_much_how_fast_and_what_was_free() -> None:
    found = Filled(filled=138 * GIB, free=139 * GIB, total=140 * GIB, write_s=0.0370, seconds=0.41)
    assert found.sentence == "138.0 of 140.0 GiB filled with NaN at 4.00 TB/s (139.0 GiB were free; 0.41 s)"


def test_every_request_is_answered_a_fault_of_cuda_too() -> None:
    answers = io.BytesIO()
    serve(Driver(free=GIB), io.BytesIO(b"fill\nfill\n"), answers)
    serve(Driver(free=GIB, refuses=True), io.BytesIO(b"fill\n"), answers)
    first, second, third = (json.loads(line) for line in answers.getvalue().splitlines())
    assert first["filled"] == second["filled"] == GIB - MARGIN_BYTES
    assert third == {"problem": "CUDA refused: cuCtxCreate failed: out of memory"}


# ---- the helper as a process ------------------------------------------------------------------------------------

FAKE_PYCUDA = """
import os, time
class Error(Exception): pass
class MemoryError(Error): pass
class Context:
    synchronize = staticmethod(lambda: None)
    def pop(self): pass
    def detach(self): pass
class Block(int):
    def free(self): pass
class Device:
    def __init__(self, ordinal): assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    def make_context(self): return Context()
def init(): pass
def mem_get_info(): return 1 << 30, 2 << 30
def mem_alloc(size): return Block(7)
def memset_d32(address, value, count): pass
"""


@pytest.fixture
def pycuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a package of that name, whose driver is the text, in the way of the helper."""

    def install(driver: str) -> None:
        (tmp_path / "pycuda").mkdir()
        (tmp_path / "pycuda" / "__init__.py").write_text("")
        (tmp_path / "pycuda" / "driver.py").write_text(driver)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_one_helper_serves_a_session_and_ends_with_it(pycuda: Callable[[str], None]) -> None:
    pycuda(FAKE_PYCUDA)
    filler = Filler("GPU-1")
    first = filler.fill()
    assert isinstance(first, Filled)
    assert (first.filled, first.free, first.total) == (GIB - MARGIN_BYTES, GIB, 2 * GIB)
    assert isinstance(filler.fill(), Filled)
    helper = filler._helper
    assert helper is not None and helper.poll() is None
    filler.close()
    assert helper.poll() is not None


def test_without_pycuda_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_memory, "available", lambda: False)
    assert Filler("GPU-1").fill() == "pycuda is not installed (pip install 'cuda-homework-grader[gpu]')"


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ("raise ImportError('libcuda.so.1: cannot open shared object file')", "pycuda cannot be used here: libcuda"),
        (FAKE_PYCUDA.replace("def init(): pass", "def init(): os._exit(3)"), "its helper process ended"),
        (FAKE_PYCUDA.replace("def init(): pass", "def init(): print('hello', flush=True)"), "its helper process"),
        (FAKE_PYCUDA.replace("def init(): pass", "def init(): raise Error('no device')"), "CUDA refused: no device"),
    ],
)
def test_a_helper_that_fails_says_why_or_is_said_to_have_failed(
    pycuda: Callable[[str], None], driver: str, words: str
) -> None:
    pycuda(driver)
    filler = Filler("GPU-1")
    problem = filler.fill()
    assert isinstance(problem, str) and words in problem
    filler.close()


def test_a_helper_that_hangs_is_ended(pycuda: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    pycuda(FAKE_PYCUDA.replace("def init(): pass", "def init(): time.sleep(60)"))
    monkeypatch.setattr(gpu_memory, "PATIENCE_S", 0.1)
    filler = Filler("GPU-1")
    assert filler.fill() == "its helper process ended, or took more than 0.1 s"
    assert filler._helper is None


def test_a_helper_ends_with_a_grader_that_is_killed(pycuda: Callable[[str], None], tmp_path: Path) -> None:
    pycuda(FAKE_PYCUDA)
    filler = Filler("GPU-1")
    assert isinstance(filler.fill(), Filled)
    helper = filler._helper
    assert helper is not None and helper.stdin is not None
    helper.stdin.close()  # as the kernel does for a process that is gone
    assert helper.wait(10) == 0


def test_the_helper_imports_no_large_packages_of_the_graders() -> None:
    code = "import sys, grader.gpu_memory; print(any(name in sys.modules for name in ('pydantic', 'numpy', 'typer')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
