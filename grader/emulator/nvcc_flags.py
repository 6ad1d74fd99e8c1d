"""Sorting a student's nvcc flags by which tool they are for. The architecture and outputs are always the emulator's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_DROPPED_WITH_VALUE = {"-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code", "-o", "--output-file",
                       "-ccbin", "--compiler-bindir", "-cudart", "--cudart", "-t", "--threads"}  # fmt: skip
_DROPPED = {"-c", "--compile", "-dc", "--device-c", "-G", "--device-debug", "-lineinfo", "--generate-line-info", "-ptx", "-cubin", "-fatbin",
            "--keep", "-v", "--verbose"}  # fmt: skip
_WITH_VALUE = {"-Xcompiler", "--compiler-options", "-Xptxas", "--ptxas-options", "-Xlinker", "--linker-options", "-D", "-U", "-I", "-L", "-l", "-isystem",
               "-include", "-maxrregcount", "--maxrregcount", "-std", "--std", "-x", "-Xnvlink", "-Xcudafe", "-diag-suppress", "--diag-suppress"}  # fmt: skip
_LIBRARIES = {"m", "pthread", "rt", "dl", "stdc++", "gomp"}


@dataclass(frozen=True)
class NvccFlags:
    """`compile` for nvcc, `ptxas` for ptxas, `link` for g++."""

    compile: tuple[str, ...]
    ptxas: tuple[str, ...]
    link: tuple[str, ...]
    relocatable: bool
    verbose_ptxas: bool

    @staticmethod
    def parse(flags: Sequence[str], folder: Path) -> NvccFlags:
        """`folder` is where relative include paths count from."""
        keep: list[str] = []
        ptxas: list[str] = []
        link: list[str] = []
        relocatable = verbose = False
        words = list(flags)
        i = 0
        while i < len(words):
            word = words[i]
            name, equals, value = word.partition("=")
            takes = not equals and (name in _WITH_VALUE or name in _DROPPED_WITH_VALUE)
            if takes and i + 1 < len(words):
                i += 1
                value = words[i]
            i += 1
            if (
                name in _DROPPED_WITH_VALUE
                or name in _DROPPED
                or re.match(r"-arch|-gencode|-code|--gpu|--generate-code", word)
            ):
                continue
            if name in ("-rdc", "--relocatable-device-code"):
                relocatable = value == "true"
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
            if name in ("-I", "-isystem") and takes:
                keep += [name, str(folder / value)]
                continue
            if word.startswith("-I"):
                keep.append(f"-I{folder / word[2:]}")
                continue
            keep.append(word)
            if takes:
                keep.append(value)
        return NvccFlags(tuple(keep), tuple(ptxas), tuple(link), relocatable, verbose)
