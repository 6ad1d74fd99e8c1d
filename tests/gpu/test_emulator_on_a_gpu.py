"""The emulator's own test programs on a real GPU: what they check of the emulator must hold there too."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build, execute, names_in, target_of
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


@dataclass(frozen=True)
class Output:
    exit_code: int
    text: str


def _run(program: Path, *arguments: str, stderr: int = subprocess.STDOUT) -> Output:
    done = subprocess.run(
        [program, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace",
        timeout=PROGRAM_S, check=False,
    )  # fmt: skip
    return Output(done.returncode, done.stdout)


@pytest.fixture(scope="module")
def programs(gpu: CudaEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Every source as an executable for this GPU, all compiled side by side."""
    folder = tmp_path_factory.mktemp("programs")
    major, minor = gpu.gpu.compute_capability
    chip = f"{major}{minor}"

    def compiled(source: Path) -> Path:
        number = f"{chip}a" if target_of(source) == f"sm_{chip}a" else chip
        code = f"arch=compute_{number},code=sm_{number}"
        program = folder / source.stem
        flags = ("-O3", "-std=c++17", "--extended-lambda", "-gencode", code)
        command = [str(gpu.toolkit.nvcc), *flags, str(source), "-o", str(program)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert done.returncode == 0, f"{source.name} does not compile: {done.stdout[-2000:]}"
        return program

    runnable = [s for s in (*SOURCES, FAULTS) if target_of(s) in ("sm_80", f"sm_{chip}a")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(runnable, pool.map(compiled, runnable), strict=True))


@pytest.fixture(scope="module")
def conformance(programs: dict[Path, Path]) -> dict[Path, Output]:
    """What each file's programs print when they run one after the other in one process."""
    return {source: _run(programs[source]) for source in SOURCES if source in programs}


@pytest.mark.parametrize(("source", "name"), CASES, ids=[f"{s.stem}-{n}" for s, n in CASES])
def test_a_conformance_program_passes_on_the_gpu(
    source: Path, name: str, programs: dict[Path, Path], conformance: dict[Path, Output]
) -> None:
    if source not in programs:
        pytest.skip(f"{source.name} is for {target_of(source)}")
    if re.search(rf"^{name} ok$", conformance[source].text, re.M):
        return
    alone = _run(programs[source], name)  # an earlier one may have taken the whole process down
    assert alone.exit_code == 0, alone.text
    assert f"{name} ok" in alone.text


@pytest.mark.parametrize("name", FAULT_NAMES)
def test_a_fault_program_gives_the_emulators_error_codes(name: str, programs: dict[Path, Path], tmp_path: Path) -> None:
    if name in EMULATOR_ONLY:
        pytest.skip(EMULATOR_ONLY[name])
    emulated = execute(build(FAULTS), name, folder=tmp_path)
    real = _run(programs[FAULTS], name, stderr=subprocess.DEVNULL)  # some write bytes there
    assert real.exit_code == emulated.exit_code
    assert _codes(real.text) == _codes(emulated.output)


def test_what_the_emulator_alone_runs_are_fault_programs() -> None:
    assert EMULATOR_ONLY.keys() <= set(FAULT_NAMES)


def _codes(output: str) -> list[str]:
    """The lines `CALL CODE` of a fault program, without what assert and printf say."""
    return re.findall(r"^\w+ \d+$", output, re.M)
