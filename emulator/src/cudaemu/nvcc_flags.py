"""Sort a student's nvcc flags by the tool that they are for. Flags that the emulator sets itself, such as those for the
architecture and for output files, are dropped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cudaemu.nvcc_options import SET_BY_THE_GRADER, TAKES_VALUE

_DROPPED = SET_BY_THE_GRADER | {"-G", "--device-debug", "-lineinfo", "--generate-line-info"}
_LIBRARIES = {"m", "pthread", "rt", "dl", "stdc++", "gomp"}


@dataclass(frozen=True)
class NvccFlags:
    """`compile`, `ptxas` and `link` are the flags for nvcc, ptxas and g++. `relocatable` stands for -rdc=true,
    `verbose_ptxas` for -Xptxas -v, `cpp_is_cuda` for -x cu."""

    compile: tuple[str, ...]
    ptxas: tuple[str, ...]
    link: tuple[str, ...]
    relocatable: bool
    verbose_ptxas: bool
    cpp_is_cuda: bool = False

    def is_cuda(self, source: str) -> bool:
        """Whether nvcc compiles the source as CUDA: because of its name, or because -x=cu makes C++ files CUDA."""
        return source.endswith(".cu") or (self.cpp_is_cuda and not source.endswith(".c"))

    @property
    def of_c(self) -> tuple[str, ...]:
        """`compile` for C files: without -std, which names a C++ standard."""
        return tuple(flag for flag in self.compile if not re.match(r"--?std=", flag))

    @staticmethod
    def parse(flags: Sequence[str]) -> NvccFlags:
        keep: list[str] = []
        ptxas: list[str] = []
        link: list[str] = []
        relocatable = verbose = cpp_is_cuda = False
        words = list(flags)
        i = 0
        while i < len(words):
            word = words[i]
            name, equals, value = word.partition("=")
            takes = not equals and name in TAKES_VALUE
            if takes and i + 1 < len(words):
                i += 1
                value = words[i]
            i += 1
            if name in ("-x", "--x"):
                cpp_is_cuda = cpp_is_cuda or value == "cu"
                continue
            if name in _DROPPED:
                continue
            if name in ("-rdc", "--relocatable-device-code"):
                relocatable = value == "true"
                continue
            if name in ("-std", "--std"):
                keep.append(f"{name}={value}")
                continue
            if name in ("-Xptxas", "--ptxas-options"):
                parts = [p for p in value.split(",") if p]
                verbose = verbose or "-v" in parts or "--verbose" in parts
                ptxas += [p for p in parts if p not in ("-v", "--verbose") and not p.startswith(("-dlcm", "-dscm"))]
                continue
            if name in ("-maxrregcount", "--maxrregcount"):
                ptxas.append(f"-maxrregcount={value}")
                continue
            if word.startswith("-l") or name == "-l":
                library = value if name == "-l" and takes else word[2:]
                if library in _LIBRARIES:
                    link.append(f"-l{library}")
                continue
            if word.startswith("-L") or name in ("-Xlinker", "--linker-options", "-Xnvlink"):
                continue
            if name in ("-Xcompiler", "--compiler-options"):
                if "-fopenmp" in value:
                    link.append("-fopenmp")
                keep += ["-Xcompiler", value]
                continue
            keep.append(word)
            if takes:
                keep.append(value)
        return NvccFlags(tuple(keep), tuple(ptxas), tuple(link), relocatable, verbose, cpp_is_cuda)
