"""Whose fault it is when a submission does not compile."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cudaemu import DEFAULT_SANITIZERS
from cudaemu.native import compile_c
from cudaemu.process import Completed, Runner, Stopped
from grader.base.verdict import Fault
from grader.course.assignment import Assignment
from grader.programs import control
from grader.programs.build import Build, build
from grader.programs.compile_errors import failure_sentence
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.engine.emulator import ConfinedHost, EmulatorEngine
from grader.programs.engine.interface import Compiled
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox import Job, Limits, budget, build_tools
from grader.sandbox.budget import Budget
from grader.sanitizers import CHECKS
from tests.support.batch_engine import PlainC
from tests.support.timed_engine import GPU

NEW_LIBRARY = "/usr/include/bits/mathcalls.h(79): error: exception specification is incompatible with cospi"


@dataclass(frozen=True)
class OldCompiler(PlainC):
    """One that this system's headers are too new for."""

    says: str = NEW_LIBRARY
    compiled: list[str] = field(default_factory=list, hash=False)

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        self.compiled.extend(sources)
        done = super().compile(sources, flags, folder=folder, output=output, run=run)
        return Compiled(Fault.STUDENT, f"{self.says}\n{done.log}")


def built(source: str, engine: Engine, rules: Assignment, folder: Path) -> Build:
    (folder / rules.submission.main).write_text(source)
    return build(read_submission(folder / rules.submission.main, rules), rules, engine)


@pytest.mark.parametrize(
    ("says", "remedy"),
    [(NEW_LIBRARY, "NVCC_CCBIN"), ("nvcc fatal   : Unsupported gpu architecture 'compute_61'", "--engine emulator")],
)
def test_where_nothing_compiles_the_machine_is_at_fault(
    says: str, remedy: str, tmp_path: Path, rules: Assignment
) -> None:
    found = built("int main(void) { return 0; }", OldCompiler(says=says), rules, tmp_path)
    assert found.fault is Fault.MACHINE
    assert found.reason.startswith(f"This machine cannot even compile a one-line kernel: {says}; see")
    assert remedy in found.reason


def test_an_error_in_a_line_of_their_own_is_the_students(tmp_path: Path, rules: Assignment) -> None:
    engine = OldCompiler()
    found = built("int main(void) { return none; }", engine, rules, tmp_path)
    assert found.fault is Fault.STUDENT
    assert engine.compiled == [rules.submission.main], "nothing else was compiled"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("int f(void); int main(void) { return f(); }", "It calls f, which is defined nowhere"),
        ("int f(void) { return 0; }", "It has no function main"),
        ("int main(void) { int i = 1e30; double error = 3; return x; }", "It does not compile: hw4.cu:1:"),
    ],
)
def test_what_does_not_build_where_other_programs_do_is_the_students(
    source: str, told: str, tmp_path: Path, rules: Assignment
) -> None:
    found = built(source, PlainC(), rules, tmp_path)
    assert found.fault is Fault.STUDENT and found.reason.startswith(told)


def test_kernels_that_launch_kernels_are_refused_unless_the_assignment_allows_them(
    tmp_path: Path, rules: Assignment
) -> None:
    engine = CudaEngine(find_toolkit(), GPU)
    source = "__global__ void child() {}\n__global__ void parent() { child<<<1, 1>>>(); }\n"
    (tmp_path / "Makefile").write_text("hw4: hw4.cu\n\tnvcc -rdc=true -o hw4 hw4.cu\n")
    found = built(source + "int main() { parent<<<1, 1>>>(); }\n", engine, rules, tmp_path)
    assert found.fault is Fault.STUDENT
    assert found.reason.startswith(
        "It launches kernels from a kernel (dynamic parallelism), which this assignment forbids"
    )
    allowed = rules.model_copy(update={"build": rules.build.model_copy(update={"dynamic_parallelism": True})})
    assert built(source + "int main() { parent<<<1, 1>>>(); }\n", engine, allowed, tmp_path).ok


def test_functions_that_ptxas_knows_for_it_are_refused_without_a_library(tmp_path: Path, rules: Assignment) -> None:
    source = (
        'extern "C" __device__ unsigned cnpLaunchDeviceV2(void*, void*);\n'
        "__global__ void parent() { cnpLaunchDeviceV2(nullptr, nullptr); }\nint main() { parent<<<1, 1>>>(); }\n"
    )
    found = built(source, CudaEngine(find_toolkit(), GPU), rules, tmp_path)
    assert found.fault is Fault.STUDENT and "launch kernels from kernels" in found.reason


def test_nvcc_compiles_a_program_again_only_if_a_file_changed(
    tmp_path: Path, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    run = build_tools.run

    def note(job: Job, limits: Limits) -> object:
        called.append(job.command[0])
        return run(job, limits)

    monkeypatch.setattr(build_tools, "run", note)

    def build_for(checks: frozenset[str]) -> tuple[Build, bool]:
        called.clear()
        found = built('#include "kernel.h"\nint main() { kernel<<<1, 1>>>(); }\n', engine(checks), rules, tmp_path)
        assert found.ok and not found.cached
        return found, any(Path(command).name in ("nvcc", "ptxas") for command in called)

    def engine(checks: frozenset[str]) -> EmulatorEngine:
        return EmulatorEngine(find_toolkit(), "sm_80", sanitize=checks)

    (tmp_path / "kernel.h").write_text("__global__ void kernel() { int unused; }\n")
    first, compiled = build_for(DEFAULT_SANITIZERS)
    assert compiled and first.log.startswith("kernel.h(1): warning")
    checked, compiled = build_for(frozenset(CHECKS))
    assert not compiled and checked.log == first.log
    (tmp_path / "kernel.h").write_text("\n__global__ void kernel() { int unused; }\n")
    changed, compiled = build_for(frozenset(CHECKS))
    assert compiled and changed.log.startswith("kernel.h(2): warning")


def test_a_header_of_a_forbidden_library_is_named_with_its_library(tmp_path: Path, rules: Assignment) -> None:
    found = built("#include <cudnn.h>\nint main(void) { return 0; }", PlainC(), rules, tmp_path)
    assert (found.program, found.fault) == (None, Fault.STUDENT)
    assert found.reason == (
        "It includes cudnn.h, which is neither in the submission nor in the CUDA toolkit here, and this assignment "
        "forbids cuDNN: write that computation yourself."
    )


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("int main() { cuInit(0); cuModuleLoad(&m, name); }", ("host.cpp", "cuInit", "driver API")),
        ("int main(void) { run(); }", ("host.cpp", "Makefile")),
    ],
)
def test_a_main_that_is_not_compiled_is_told_from_none(host: str, words: tuple[str, ...], rules: Assignment) -> None:
    log = "(.text+0x17): undefined reference to `main'"
    said = failure_sentence(log, rules, uncompiled=[("notes.txt", b"main"), ("host.cpp", host.encode())])
    assert all(word in said for word in words)


def test_static_shared_memory_that_does_not_fit_is_counted_and_named(rules: Assignment) -> None:
    entry = "Entry function '_Z9attentionPKfS0_S0_Pfii'"
    log = f"ptxas error   : {entry} uses too much shared data (0x20000 bytes, 0xc000 max)"
    said = failure_sentence(log, rules)
    takes = "ernel attention takes 131,072 bytes of static shared memory, but a block may have at most 49,152:"
    assert said.startswith(f"K{takes}") and "extern __shared__" in said
    source = b"// attention(\n__global__ __launch_bounds__(32)\nvoid attention(const float *q) {}\n"
    assert failure_sentence(log, rules, compiled=[("hw4.cu", source)]).startswith(f"hw4.cu:2: k{takes}")


@pytest.mark.parametrize(
    ("open_end", "told"),
    [
        (
            "for (;;) { p[0] = 1; }\nint main() { return 0; }\n",
            "hw4.cu(2): a closing } is missing above this line: the { of line 1 is",
        ),
        ("for (;;) {}\nstatic void f() {\n}\n}\nint main() { return 0; }\n", "hw4.cu(2): a closing } is missing"),
        ("}\nint main() {\n    if (1) {\n}\n", "A closing } is missing: the } of line 4 closes the { of line 3, but"),
    ],
)
def test_a_missing_brace_is_looked_for_above_the_next_function(
    open_end: str, told: str, tmp_path: Path, rules: Assignment
) -> None:
    source = f"__global__ void kernel(float* p) {{ {open_end}"
    assert built(source, CudaEngine(find_toolkit(), GPU), rules, tmp_path).reason.startswith(told)


@pytest.mark.usefixtures("hurried_room")
def test_messages_made_to_be_searched_for_long_are_given_up(rules: Assignment) -> None:
    log = ("x" + ":1" * 90_000 + " error") * 3
    began = time.process_time()
    assert failure_sentence(log, rules, solve="void solve()").startswith("It does not compile")
    assert time.process_time() - began < 2


def test_what_a_build_runs_and_reads_shares_one_limit(
    rules: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "WALL_PER_CPU", 200)  # this machine may be busy
    engine = EmulatorEngine(find_toolkit(), "sm_80")
    hurried = rules.model_copy(update={"build": rules.build.model_copy(update={"limit_s": 0.2})})
    source = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"
    late = built(source, engine, hurried, tmp_path)
    assert (late.fault, late.reason) == (Fault.STUDENT, SLOW.format("0.2"))
    monkeypatch.setattr(control, "compile_problem", lambda engine, run=False: "")  # its build has a budget, too
    monkeypatch.setattr(Budget, "spend", lambda budget, cpu_s: setattr(budget, "spent_s", 120))
    late = built(source.replace("k", "two_calls"), engine, rules, tmp_path)
    assert (late.fault, late.reason) == (Fault.STUDENT, SLOW.format("120"))


@pytest.mark.parametrize("code", [124, 125])
def test_a_compiler_that_was_stopped_has_not_failed(code: int, tmp_path: Path) -> None:
    def stopped(*_: object) -> Completed:
        return Completed(code, "gcc was stopped at its memory limit.", stopped=True)

    with pytest.raises(Stopped, match="gcc was stopped"):
        compile_c("int x;", tmp_path / "x.c", "-O2", ConfinedHost(stopped), tmp_path)


SLOW = "Compiling took more than {} s of processor time: make the code, its templates or its initial values smaller."
