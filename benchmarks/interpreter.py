"""Triton's programs on the emulator and in Triton's own interpreter: the time of their kernels, the mistakes found.

    PYTHONPATH=. python benchmarks/interpreter.py [NAME...]     programs of tests/triton/conformance, after Triton's tutorials 1 to 6
    PYTHONPATH=. python benchmarks/interpreter.py --bugs        the mistakes of tests/triton/test_bugs.py: which is found at its line

Needs Triton and, for the interpreter alone, PyTorch (the CPU's is enough). Both run the same files, each in a process
on one core: on the emulator with the tensors and the checks that students have, in the interpreter (TRITON_INTERPRET=1)
with PyTorch's. The times are those of launches, without compiling and without the work of the host. A program says by
itself whether its results are right, in float16 and bfloat16; the table repeats it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.triton import test_bugs

PROGRAMS = Path(__file__).resolve().parent.parent / "tests/triton/conformance"
SIZES = {"vector_add": 20, "softmax": 5, "matmul": 4, "dropout": 4, "layer_norm": 4, "attention": 2}
"""In the tutorials' order: the factor by which each is repeated, or is longer, than in the tests."""

# Put before a program: adds up the time that one function, through which all launches go, takes.
TIMER = """\
import atexit, time
class _Timer:
    total = 0.0
def _timed(function):
    def call(*values, **options):
        begin = time.process_time()
        try:
            return function(*values, **options)
        finally:
            _Timer.total += time.process_time() - begin
    return call
atexit.register(lambda: print(f"launches took {_Timer.total:.6f} s"))
"""
ON_EMULATOR = (
    TIMER.replace("time.process_time", "time.perf_counter")
    + """\
from grader.plans.launcher import Launcher as _L
from grader.plans.recorder import current as _current
_launch = _L.__call__
_L.__call__ = _timed(lambda *values, **options: (_launch(*values, **options), _current().synchronize()))
"""
)
# The interpreter cannot autotune without a GPU: it gets the first configuration, which the emulator takes, too. It compiles
# no kernels, so that none has registers. Tensors are PyTorch's on the CPU.
IN_INTERPRETER = (
    TIMER
    + """\
from types import SimpleNamespace as _N
from triton.runtime import driver as _driver
from triton.runtime.interpreter import GridExecutor as _L, InterpretedFunction as _F
import torch, triton
_L.__call__ = _timed(_L.__call__)
class _First:
    def __init__(self, kernel, options): self.kernel, self.options = kernel, options
    def __getitem__(self, grid):
        return lambda *values, **more: self.kernel[grid](*values, **more, **self.options)
triton.autotune = lambda configs, **_: lambda kernel: _First(kernel, configs[0].kwargs)
class _Compiled:
    n_regs, metadata = 32, _N(shared=1 << 10)
    def __init__(self, kernel): self.kernel = kernel
    def _init_handles(self): pass
    def __getitem__(self, grid): return self.kernel[grid]
_F.warmup = lambda self, *values, **options: _Compiled(self)
_properties = {"multiprocessor_count": 108, "max_num_regs": 65536, "max_shared_mem": 163 << 10, "warpSize": 32}
_device = torch.device("cpu", 0)
_driver.set_active(_N(
    utils=_N(get_device_properties=lambda device: _properties), get_active_torch_device=lambda: _device
))
def _on_cpu(function):
    def call(*values, device=None, **options): return function(*values, **options)
    return call
for _name in ("empty", "zeros", "full", "tensor"): setattr(torch, _name, _on_cpu(getattr(torch, _name)))
torch.Tensor.is_cuda = True
_numpy = torch.Tensor.numpy
torch.Tensor.numpy = lambda self: _numpy((self.float() if self.dtype == torch.bfloat16 else self).detach())
"""
)


def one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run(command: list[str], environment: dict[str, str], limit_s: float) -> tuple[str, float]:
    """Return the program's statement on its results, and the seconds of its launches."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit_s, check=False, preexec_fn=one_core
        )
    except subprocess.TimeoutExpired:
        return f"not done after {limit_s:g} s", limit_s
    took = re.search(r"launches took ([\d.]+) s", done.stdout)
    said = (done.stderr or "no result").strip().splitlines()[-1]
    return "right" if "right" in done.stdout else said, float(took[1]) if took else 0.0


def on_emulator(name: str, size: int, folder: Path) -> tuple[str, float]:
    program = folder / f"{name}.py"
    program.write_text(ON_EMULATOR + (PROGRAMS / f"{name}.py").read_text())
    command = [sys.executable, "-m", "grader", "run", str(program), "--assignment", "softmax", "--engine", "emulator"]
    return run([*command, str(size)], dict(os.environ), 300)


def in_interpreter(name: str, size: int, folder: Path) -> tuple[str, float]:
    program = folder / f"{name}.py"
    program.write_text(IN_INTERPRETER + (PROGRAMS / f"{name}.py").read_text())
    return run([sys.executable, str(program), str(size)], {**os.environ, "TRITON_INTERPRET": "1"}, 300)


def interpreted_bug(folder: Path) -> tuple[str, str]:
    """Return the interpreter's output for bug.py, and how it ends."""
    try:
        done = subprocess.run(
            [sys.executable, "bug.py"], cwd=folder, env={**os.environ, "TRITON_INTERPRET": "1"},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "", "does not end"
    return done.stderr, "crashes" if done.returncode < 0 else "another error" if done.returncode else "nothing"


def compare_bugs() -> None:
    """A table of the seeded mistakes. The interpreter finds one if a traceback names its line."""
    print("| mistake | emulator | interpreter |\n|---|---|---|")
    found = Counter[str]()
    for name, bug in test_bugs.BUGS.items():
        program = test_bugs.HEAD + bug
        with tempfile.TemporaryDirectory() as scratch:
            said = test_bugs.said_of(program, Path(scratch))
            (Path(scratch) / "bug.py").write_text(program)
            interpreted, ended = interpreted_bug(Path(scratch))
        ways = {"emulator": (said, "nothing"), "interpreter": (interpreted, ended)}
        cells = {
            way: "its line" if test_bugs.names_line(program, text) else other for way, (text, other) in ways.items()
        }
        found.update(way for way, cell in cells.items() if cell == "its line")
        print(f"| {name} | {cells['emulator']} | {cells['interpreter']} |", flush=True)
    print(f"| of {len(test_bugs.BUGS)} | {found['emulator']} | {found['interpreter']} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(SIZES))
    parser.add_argument("--repetitions", type=int, default=3, help="the least time counts")
    parser.add_argument("--bugs", action="store_true", help="compare what is found, not the time")
    options = parser.parse_args()
    if options.bugs:
        compare_bugs()
        return
    print("| program | emulator s | interpreter s | ratio | emulator | interpreter |\n|---|---:|---:|---:|---|---|")
    for name in options.names:
        with tempfile.TemporaryDirectory() as scratch:
            ours, theirs = (
                min(
                    (way(name, SIZES[name], Path(scratch)) for _ in range(options.repetitions)),
                    key=lambda pair: pair[1],
                )
                for way in (on_emulator, in_interpreter)
            )
        ratio = theirs[1] / ours[1] if ours[1] else 0.0
        print(f"| {name} | {ours[1]:.3f} | {theirs[1]:.3f} | {ratio:.1f} | {ours[0]} | {theirs[0]} |", flush=True)


if __name__ == "__main__":
    main()
