"""The instruction set that the emulator's C is compiled for. It is part of the keys under which programs, the runtime
and templates are cached.

By default the compiler may use all instructions of this machine (-march=native). GRADER_EMULATOR_ISA allows fewer, so
that one machine can test the code that others run: `avx2` is x86-64-v3 (AVX2, FMA, F16C), `sse` the baseline of every
x86-64 processor (SSE2), `neon` the baseline of 64-bit Arm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cudaemu.errors import MachineFault, UsageError

VARIABLE = "GRADER_EMULATOR_ISA"
RUNTIME = Path(__file__).parent / "runtime"
LANGUAGE = ("-std=gnu17", "-ffp-contract=off", "-fno-strict-aliasing")


@dataclass(frozen=True)
class InstructionSet:
    """`name` is avx512, avx2, sse or neon; `lanes` is the number of 32-bit lanes in a vector register (W of
    runtime/vectors.h); `flags` are the compiler's options. `identity` is the compiler's version and all macros that it
    predefines: two machines with equal identities can run each other's programs."""

    name: str
    lanes: int
    flags: tuple[str, ...]
    identity: str


def host_compiler(language: str = "c") -> str:
    names = (os.environ.get("CC"), "gcc", "cc") if language == "c" else (os.environ.get("CXX"), "g++", "c++")
    for name in names:
        if name and shutil.which(name):
            return name
    raise MachineFault("No C compiler found: the emulator needs gcc and g++ (apt install g++).")


def host_compiler_folders() -> tuple[Path, ...]:
    """The folders of the host's compilers if these are outside /usr, as with CC=/opt/gcc/bin/gcc."""
    programs = (Path(shutil.which(host_compiler(language)) or "/usr/bin/cc").resolve() for language in ("c", "c++"))
    return tuple({program.parent.parent for program in programs if not program.is_relative_to("/usr")})


def binutil(name: str) -> str:
    """The path of the program `name` that belongs to the C compiler: a cross compiler has its own objcopy."""
    return _output([host_compiler(), f"-print-prog-name={name}"]).strip() or name


def instruction_set() -> InstructionSet:
    """The instruction set that the emulator currently compiles for. Raises UsageError for a GRADER_EMULATOR_ISA that
    this processor cannot run, MachineFault for a processor that the emulator does not know."""
    return _instruction_set(host_compiler(), os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=8)
def _instruction_set(compiler: str, wanted: str) -> InstructionSet:
    native: tuple[str, ...] = ("-march=native",)
    macros = _defines(compiler, native)
    if not macros:  # cross compilers refuse this option
        native = ()
        macros = _defines(compiler, native)
    if "W" not in macros:
        raise MachineFault(f"{compiler} does not compile here; the emulator needs gcc and g++ (apt install g++).")
    if "__clang__" in macros:
        raise MachineFault(f"{compiler} is clang, but the emulator uses gcc's vector functions; set CC=gcc, CXX=g++.")
    if "__x86_64__" in macros:
        possible = {"sse": ("-march=x86-64", "-mtune=native"), "": native}
        if {"__AVX2__", "__FMA__", "__F16C__", "__BMI2__", "__LZCNT__", "__MOVBE__"} <= macros.keys():
            possible["avx2"] = ("-march=x86-64-v3", "-mtune=native")
        if "EMU_AVX512" in macros:
            possible["avx512"] = native
        possible = {name: (*flags, "-mprefer-vector-width=512") for name, flags in possible.items()}
    elif "__aarch64__" in macros:
        possible = {"neon": (), "": native}
    else:
        raise MachineFault(
            f"The emulator runs on x86-64 and 64-bit Arm only; {compiler} compiles for another processor."
        )
    if wanted not in possible:
        allowed = ", ".join(sorted(filter(None, possible)))
        raise UsageError(f"{VARIABLE}={wanted}: expected {allowed} on this processor; unset it to use all it has.")
    flags = possible[wanted]
    macros = _defines(compiler, flags)
    lanes = int(macros["W"])
    name = {16: "avx512", 8: "avx2"}.get(lanes, "neon" if "__aarch64__" in macros else "sse")
    version = _output([compiler, "--version"])
    return InstructionSet(name, lanes, flags, "\n".join((name, version, *sorted(map(" ".join, macros.items())))))


def _defines(compiler: str, flags: Sequence[str]) -> dict[str, str]:
    """The macros that the compiler and runtime/warp.h define with these flags; empty if the compiler refuses them."""
    text = _output([compiler, *LANGUAGE, *flags, "-dM", "-E", "-x", "c", str(RUNTIME / "warp.h")])
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.M))


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout if done.returncode == 0 else ""
