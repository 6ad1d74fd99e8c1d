"""An engine for tests of measuring: programs are plain C for this CPU, and write a trace as the CUPTI tracer does.

What kernel a program says it ran stands in its source, `const double kernel_ms = 0.5;`, so that GPU times are known
exactly. Everything else is real: the sandbox, fresh inputs, checks, repetition, scores.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cudaemu.process import Runner
from grader.base.verdict import Fault
from grader.programs import trace
from grader.programs.engine.cuda import CudaEngine, Gpu
from grader.programs.engine.interface import Compiled, Launch
from grader.programs.toolkit import Toolkit

GPU = Gpu(node=0, uuid="GPU-of-the-tests", name="A GPU", driver="580", compute_capability=(9, 0), memory_bytes=1 << 30)

_TRACER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
extern const double kernel_ms;
static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}
static long long began;
__attribute__((constructor)) static void begin(void) { began = now(); }
__attribute__((destructor)) static void end(void)
{
    const char *target = getenv("GRADER_TRACE");
    if (!target) return;
    FILE *file = fdopen(atoi(target + 3), "w");  // fd:N
    fprintf(file, "{\"kind\":\"start\",\"engine\":\"cuda\",\"device\":\"A GPU\",\"compute_capability\":\"9.0\","
                  "\"driver\":\"13.0\",\"pid\":1,\"clock_ns\":%lld}\n", began);
    fprintf(file, "{\"kind\":\"kernel\",\"name\":\"attention(float const*, float*)\",\"grid\":[8,1,1],"
                  "\"block\":[1024,1,1],\"registers\":32,\"static_shared_bytes\":0,\"dynamic_shared_bytes\":0,"
                  "\"local_bytes\":0,\"start_ns\":%lld,\"end_ns\":%lld,\"stream\":7,\"counters\":{}}\n",
            began, began + (long long)(kernel_ms * 1e6));
    fprintf(file, "{\"kind\":\"end\",\"dropped\":0,\"api_errors_suppressed\":0}\n");
    fclose(file);
}
"""


class TimedC(CudaEngine):
    """The cuda engine but for the compiler and the tracer; `root` is a folder for a toolkit's tools, bin/ncu say."""

    def __init__(self, root: Path) -> None:
        super().__init__(Toolkit(root / "bin" / "nvcc", root, "V13.0.88"), GPU)

    def identity(self) -> str:
        return "timed C"

    @property
    def build_paths(self) -> tuple[Path, ...]:
        return ()

    @property
    def facts(self) -> Mapping[str, str]:
        return {"driver": self.gpu.driver, "compiler": "cc"}

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        (folder / "tracer.c").write_text(_TRACER)
        done = run(["cc", "-O1", "-x", "c", *sources, "tracer.c", "-o", str(output), "-lm"], folder)
        return Compiled(None if done.exit_code == 0 else Fault.STUDENT, done.output)

    def launch(self, program: Path, arguments: Sequence[str], trace_target: str, *, traced: bool = True) -> Launch:
        environment = {trace.PATH_VARIABLE: trace_target} if traced else {}
        return Launch(command=(str(program), *arguments), environment=environment, traced=traced)


def program(source: str, kernel_ms: float) -> str:
    """A C program whose trace says that it ran one kernel of `kernel_ms` milliseconds."""
    return f"const double kernel_ms = {kernel_ms};\n{source}"


def tool(root: Path, name: str, script: str) -> Path:
    """Puts a shell script in a tool's place. It sees files of `root`; $all is its command line, $out the
    file that -o names."""
    path = root / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    find = 'while [ $# -gt 0 ]; do case "$1" in -o) out="$2";; esac; shift; done'
    path.write_text(f'#!/bin/sh\nall="$*"\n{find}\n{script}\n')
    path.chmod(0o755)
    return path
