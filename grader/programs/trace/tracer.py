"""Builds the CUPTI tracer, the shared library that a traced CUDA program loads (see cupti_tracer.cpp)."""

from __future__ import annotations

from pathlib import Path

from cudaemu.process import Runner
from grader.base.errors import GraderFault

SOURCE = Path(__file__).with_name("cupti_tracer.cpp")
SOURCES = (SOURCE, Path(__file__).with_name("cuda_error_names.inc"))
"""Every source file of the library, for caching by content."""


def build_tracer(
    output: Path,
    *,
    cupti_include: Path,
    cuda_include: Path,
    cupti_library: Path,
    cxx: str,
    run: Runner,
) -> Path:
    """Compile the tracer into the shared library `output` and return its path.

    `cupti_include` holds cupti.h, `cuda_include` cuda.h; `cupti_library` is the file libcupti.so or
    libcupti.so.13. The tracer looks for CUPTI in that file's folder, so a traced program needs no
    LD_LIBRARY_PATH. The C++ library is linked statically, so that it cannot clash with the program's own.

    Raises GraderFault with the compiler's messages if the build fails.
    """
    library = cupti_library.absolute()
    command = [
        cxx,
        *("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra"),
        *("-static-libstdc++", "-static-libgcc"),
        *("-isystem", str(cupti_include), "-isystem", str(cuda_include)),
        *("-o", str(output), str(SOURCE), str(library)),
        # RPATH rather than RUNPATH, since CUPTI also finds its sibling libraries through it.
        f"-Wl,--disable-new-dtags,-rpath,{library.parent}",
        *("-ldl", "-pthread"),
    ]
    done = run(command, output.parent)
    if done.exit_code != 0:
        raise GraderFault(
            f"{cxx} could not build the CUPTI tracer with CUPTI from {library.parent}; without the tracer, "
            f"GPU time cannot be measured. Check that {cupti_include} has cupti.h and {cuda_include} "
            f"has cuda.h of the same toolkit. The compiler said:\n{done.output.strip()}"
        )
    return output
