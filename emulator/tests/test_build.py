"""What `compile_program` accepts, refuses and reports."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cudaemu import CompileFailed, EmulatedProgram, Extras, Unsupported, Workplace, compile_program
from cudaemu.native import compile_c, compiled_runtime
from cudaemu.nvcc import read_registers
from cudaemu.nvcc_flags import NvccFlags
from cudaemu.process import Completed, run_plainly
from cudaemu.ptx import parse
from emulator.tests.programs import CONFORMANCE_FLAGS, HERE, build, execute, host, nvcc, toolkit_headers

HELLO = "__global__ void k(int *p) { p[threadIdx.x] = 1; }\nint main() { k<<<1, 1>>>(0); return 0; }\n"


def make(folder: Path, text: str, *flags: str) -> EmulatedProgram:
    source = folder / "hw4.cu"
    source.write_text(text)
    return compile_program([source], folder / "out", Workplace(folder / "work"), nvcc=nvcc(), host=host(), flags=flags)


def test_a_syntax_error_is_reported_with_the_students_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(CompileFailed) as caught:
        make(tmp_path, "int main() {\n  retrun 0;\n}\n")
    assert "hw4.cu(2): error" in caught.value.log


def test_a_call_into_a_library_fails_to_link_and_names_the_function(tmp_path: Path) -> None:
    with pytest.raises(CompileFailed) as caught:
        make(tmp_path, 'extern "C" int cublasSgemm_v2(int);\nint main() { return cublasSgemm_v2(1); }\n')
    assert "cublasSgemm_v2" in caught.value.log


TWO_KERNELS = """#include <cstdio>
__global__ void first(int *p) { p[0] = 1; }
__global__ void second(int *p) { p[1] = 2; }
int main() {
    int *p;
    cudaMallocManaged(&p, 8);
    first<<<1, 1>>>(p), second<<<1, 1>>>(p);
    cudaDeviceSynchronize();
    printf("%d %d %d", p[0], p[1], (int)cudaGetLastError());
}
"""


@pytest.mark.parametrize(
    ("launched", "printed"), [((), "1 2 0"), (("second(int*)",), "0 2 0"), (("third()",), "1 2 0")]
)
def test_kernels_that_are_not_launched_do_nothing(launched: tuple[str, ...], printed: str, tmp_path: Path) -> None:
    (tmp_path / "two.cu").write_text(TWO_KERNELS)
    place, extras = Workplace(tmp_path / "work"), Extras(launched=launched)
    made = compile_program(
        [tmp_path / "two.cu"], tmp_path / "out", place, nvcc=nvcc(), host=host(), target="sm_80", extras=extras
    )
    assert execute(made.path, folder=tmp_path).output == printed


def test_each_unsupported_instruction_is_refused_with_its_line(tmp_path: Path) -> None:
    source = HERE / "refused_instructions.cu"
    with pytest.raises(Unsupported) as caught:
        compile_program(
            [source], tmp_path / "out", Workplace(tmp_path / "work"), nvcc=nvcc(), host=host(), target="sm_90"
        )
    lines = {i for i, line in enumerate(source.read_text().splitlines(), 1) if line.startswith("KERNEL(")}
    assert lines
    assert {f.line for f in caught.value.findings if f.file and f.file.endswith(source.name)} == lines
    assert all(f.what and f.advice for f in caught.value.findings)


def test_runtime_functions_the_emulator_lacks_are_named(tmp_path: Path) -> None:
    source = HERE / "refused_calls.cu"
    with pytest.raises(Unsupported) as caught:
        compile_program([source], tmp_path / "out", Workplace(tmp_path / "work"), nvcc=nvcc(), host=host())
    assert {f.what for f in caught.value.findings} == {
        "cudaGraphicsGLRegisterBuffer (OpenGL interoperability)",
        "cuMemCreate (virtual memory management)",
        "cuInit (the driver API)",
    }
    assert all(f.advice for f in caught.value.findings)


def test_dynamic_parallelism_is_refused_in_one_sentence(tmp_path: Path) -> None:
    text = (
        "__global__ void child(int *p) { p[threadIdx.x] = 1; }\n"
        "__global__ void parent(int *p) { child<<<1, 32>>>(p); child<<<2, 32>>>(p); }\n"
        "__global__ void other(int *p) { child<<<1, 32>>>(p); }\n"
        "int main() { parent<<<1, 1>>>(nullptr); other<<<1, 1>>>(nullptr); return 0; }\n"
    )
    with pytest.raises(Unsupported) as caught:
        make(tmp_path, text, "-rdc=true")
    (finding,) = caught.value.findings
    assert str(finding).endswith(
        "hw4.cu:2: a kernel that launches a kernel (dynamic parallelism) is not supported by the emulator; "
        "launch both from the host, in a loop if necessary"
    )


def test_what_the_runtime_lacks_says_so_once_and_gives_an_error_code(tmp_path: Path) -> None:
    text = (
        "#include <cstdio>\n__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n"
        "  cudaIpcMemHandle_t h;\n  int n = 0;\n"
        "  for (int i = 0; i < 2; i++)\n    n += cudaIpcGetMemHandle(&h, nullptr) == cudaErrorNotSupported;\n"
        '  printf("%d\\n", n);\n}\n'
    )
    done = execute(make(tmp_path, text).path, folder=tmp_path)
    assert done.output == "2\n"
    (note,) = done.findings()
    assert (note["is"], note["line"], note["facts"]["function"]) == ("emulator_lacks", 8, "cudaIpcGetMemHandle")
    assert note["facts"]["what"] == "memory and events shared between processes"


def test_each_host_thread_has_a_default_stream_of_its_own_when_compiled_so(tmp_path: Path) -> None:
    text = (
        "#include <cstdio>\n#include <thread>\n__global__ void wait(volatile int *flag) { while (*flag == 0) {} }\n"
        "__global__ void raise(volatile int *flag) { *flag = 1; }\nint main() {\n  int *flag;\n"
        "  cudaHostAlloc(&flag, 4, cudaHostAllocMapped);\n  *flag = 0;\n  wait<<<1, 1>>>(flag);\n"
        "  std::thread([&] { raise<<<1, 1>>>(flag); cudaStreamSynchronize(0); }).join();\n"
        '  printf("%d\\n", cudaStreamSynchronize(0));\n}\n'
    )
    done = execute(make(tmp_path, text, "--default-stream=per-thread").path, folder=tmp_path)
    assert done.output == "0\n"
    assert {kernel["name"] for kernel in done.kernels()} == {"raise(int volatile*)", "wait(int volatile*)"}


def test_a_kernels_registers_are_read_from_what_ptxas_prints() -> None:
    log = (
        "ptxas info    : Compiling entry function '_Z1kPi' for 'sm_80'\n"
        "ptxas info    : Function properties for _Z1kPi\n"
        "    0 bytes stack frame\nptxas info    : Used 10 registers, used 1 barriers, 1024 bytes smem\n"
    )
    assert host().read(read_registers, log) == {"_Z1kPi": 10}


@pytest.mark.parametrize("flags", [(), ("-rdc=true",)], ids=["separate", "relocatable"])
def test_a_program_of_two_files_runs(flags: tuple[str, ...], tmp_path: Path) -> None:
    program = build(HERE / "linked" / "first.cu", HERE / "linked" / "second.cu", flags=("-O3", *flags))
    done = execute(program, folder=tmp_path)
    assert done.output.split() == (["21", "641", "37"] if flags else ["10", "320", "0"])


def test_the_trace_has_kernels_and_copies_with_their_facts(tmp_path: Path) -> None:
    done = execute(
        build(HERE / "conformance" / "api.cu", flags=CONFORMANCE_FLAGS), "streams_and_events", folder=tmp_path
    )
    assert done.trace[0]["kind"] == "start" and done.trace[0]["engine"] == "emulator"
    assert (done.trace[-1]["kind"], done.trace[-1]["dropped"]) == ("end", 0)
    kernels = done.kernels()
    assert len(kernels) == 6 and {k["name"] for k in kernels} == {"add_one(int*, int)"}
    assert kernels[0]["grid"] == [4, 1, 1] and kernels[0]["block"] == [256, 1, 1]
    assert kernels[0]["end_ns"] > kernels[0]["start_ns"] and kernels[0]["stream"] != kernels[-1]["stream"]
    assert any(t["kind"] == "memcpy" and t["direction"] == "DtoH" and t["bytes"] == 4000 for t in done.trace)


def test_the_architecture_and_libraries_of_a_makefile_are_left_out_and_the_rest_is_kept() -> None:
    flags = NvccFlags.parse(
        [
            *("-O3", "-arch=sm_61", "-gencode", "arch=compute_61,code=sm_61", "-lcublas", "-lm", "-Iinc"),
            *("-Xptxas", "-v,-O3", "-maxrregcount=32", "-Xcompiler", "-fopenmp", "-DN=4", "-rdc=true", "-o", "hw4"),
        ]
    )  # fmt: skip
    assert flags.compile == ("-O3", "-Iinc", "-Xcompiler", "-fopenmp", "-DN=4")
    assert flags.ptxas == ("-O3", "-maxrregcount=32") and flags.link == ("-lm", "-fopenmp")
    assert flags.relocatable and flags.verbose_ptxas


@pytest.mark.parametrize("order", ["reverse", "random:1", "random:2"])
def test_another_schedule_of_warps_gives_the_same_results_for_correct_programs(order: str, tmp_path: Path) -> None:
    program = build(HERE / "conformance" / "control.cu", flags=CONFORMANCE_FLAGS)
    for name in ("tree_reduction", "prefix_sum", "named_barriers_for_half_a_block"):
        assert execute(program, name, folder=tmp_path, GRADER_EMULATOR_SCHEDULE=order).exit_code == 0


def test_where_an_optimisation_crashes_the_compiler_it_goes_without(tmp_path: Path) -> None:
    levels: list[str] = []

    def crashes_when_optimising(command: Sequence[str], folder: Path) -> Completed:
        levels.append(next(word for word in command if word.startswith("-O")))
        if levels[-1] != "-O1":
            return Completed(1, "during GIMPLE pass: sink\ninternal compiler error: Segmentation fault")
        return run_plainly(command, folder)

    crashing = host(crashes_when_optimising)
    assert compile_c("int one(void) { return 1; }\n", tmp_path / "one.c", "-O2", crashing, tmp_path).exists()
    assert levels == ["-O2", "-O1"]


def test_a_path_with_two_slashes_is_no_comment() -> None:
    """PyPI's nvcc names its headers so."""
    module = parse('.version 9.0\n.target sm_80\n.address_size 64\n\t.file\t1 "/usr/bin/..//include/a.h" // not this\n')
    assert module.files == {1: "/usr/include/a.h"}


def test_the_runtime_compiles_without_a_warning() -> None:
    compiled = compiled_runtime(toolkit_headers(), host())
    assert (compiled / "warnings.txt").read_text() == ""
