"""The emulator's own test programs on a real GPU: what they check of the emulator must hold there too."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build, execute, names_in, only_one, target_of
from grader.programs.engine.cuda import CudaEngine

SOURCES = sorted((HERE / "conformance").glob("*.cu"))
CASES = [(source, name) for source in SOURCES for name in names_in(source)]
FAULTS = HERE / "faults.cu"
FAULT_NAMES = re.findall(r'(?:CASE\(|strcmp\(name, )"(\w+)"', FAULTS.read_text())
PROGRAM_S = 120.0

_PAGES = "a GPU notices only what lies outside of its 2 MiB pages"
_NEVER_ENDS = "a GPU that drives no display never ends it"
EMULATOR_ONLY = {
    "past_the_end": _PAGES,
    "read_past_the_end": _PAGES,
    "one_lane_outside": _PAGES,
    "use_after_free": _PAGES,
    "no_dynamic_shared_memory": "a GPU gives each block more shared memory than it asked for",
    "host_pointer": "a driver with heterogeneous memory management lets kernels read host memory",
    "endless": _NEVER_ENDS,
    "deadlock": _NEVER_ENDS,
    "lanes_wait_in_a_circle": _NEVER_ENDS,
    "lock_in_a_function": "it ends on a GPU, since compute capability 7.0",
    "stack_overflow": "how deep a GPU's stack is, and what happens beyond, depends on its driver",
}
"""Why a GPU gives no error, or none that can be relied on, for some of the fault programs."""


def _run(program: Path, *arguments: str, stderr: int = subprocess.STDOUT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace",
        timeout=PROGRAM_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("source", "name"), CASES, ids=[f"{s.stem}-{n}" for s, n in CASES])
def test_a_conformance_program_passes_on_the_gpu(
    source: Path, name: str, gpu: CudaEngine, compiled: Callable[..., Path]
) -> None:
    if target_of(source) not in ("sm_80", f"sm_{gpu.gpu.architecture}"):
        pytest.skip(f"{source.name} is for {target_of(source)}")
    program = compiled(source, "--extended-lambda")
    together = program.with_suffix(".txt")  # what they print when they run one after the other in one process
    with only_one(together):
        if not together.exists():
            together.write_text(_run(program).stdout)
    if re.search(rf"^{name} ok$", together.read_text(), re.M):
        return
    alone = _run(program, name)  # an earlier one may have taken the whole process down
    assert alone.returncode == 0, alone.stdout
    assert f"{name} ok" in alone.stdout


@pytest.mark.parametrize("name", FAULT_NAMES)
def test_a_fault_program_gives_the_emulators_error_codes(
    name: str, compiled: Callable[..., Path], tmp_path: Path
) -> None:
    if name in EMULATOR_ONLY:
        pytest.skip(EMULATOR_ONLY[name])
    emulated = execute(build(FAULTS), name, folder=tmp_path)
    real = _run(compiled(FAULTS), name, stderr=subprocess.DEVNULL)  # some write bytes there
    assert real.returncode == emulated.exit_code
    assert _codes(real.stdout) == _codes(emulated.output)


def test_what_the_emulator_alone_runs_are_fault_programs() -> None:
    assert EMULATOR_ONLY.keys() <= set(FAULT_NAMES)


def _codes(output: str) -> list[str]:
    """The lines `CALL CODE` of a fault program, without what assert and printf say."""
    return re.findall(r"^\w+ \d+$", output, re.M)
