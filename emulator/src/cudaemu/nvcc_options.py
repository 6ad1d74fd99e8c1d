"""nvcc's options as all readers of command lines need them: Makefiles, single compiler calls, and the emulator."""

from __future__ import annotations

TAKES_VALUE = frozenset({
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-o", "--output-file",
    "-ccbin", "--compiler-bindir", "-D", "--define-macro", "-U", "--undefine-macro", "-I", "--include-path",
    "-isystem", "--system-include", "-include", "--pre-include", "-L", "--library-path", "-l", "--library",
    "--optimize", "-std", "--std", "-maxrregcount", "--maxrregcount", "-x", "--x", "-m", "--machine", "-t",
    "--threads", "-Xptxas", "--ptxas-options", "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options",
    "-Xcudafe", "-Xnvlink", "-Xarchive", "-MF", "-MT", "-diag-suppress", "--diag-suppress", "-default-stream",
    "--default-stream", "-cudart", "--cudart", "-rdc", "--relocatable-device-code", "-ftz", "--ftz", "-prec-div",
    "--prec-div", "-prec-sqrt", "--prec-sqrt", "-fmad", "--fmad",
})  # fmt: skip
"""Options whose value may be the next word (nvcc --help). -O is not among them: Makefiles say -O3, or -O alone."""

SET_BY_THE_GRADER = frozenset({
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "-o", "--output-file",
    "-ccbin", "--compiler-bindir", "-x", "--x", "-m", "--machine", "-m32", "-m64", "-t", "--threads", "-cudart",
    "--cudart", "-c", "--compile", "-dc", "--device-c", "-dlink", "--device-link", "-link", "--link", "-lib",
    "--lib", "-shared", "--shared", "-run", "--run", "-ptx", "--ptx", "-cubin", "--cubin", "-fatbin", "--fatbin",
    "-M", "-MM", "-MD", "-MMD", "-MP", "-MF", "-MT", "-v", "--verbose", "-keep", "--keep",
})  # fmt: skip
"""Options for what the grader decides itself: the architecture, what is made of which stage, where it goes."""
