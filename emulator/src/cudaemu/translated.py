"""What the readers of `translation` answer: C text to compile, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from cudaemu.errors import MAX_SENTENCE

MAX_TEMPLATES = 50_000
MAX_KERNELS = 20_000
MAX_FILES = 10_000
MAX_C_BYTES = 256 << 20
MAX_FINDINGS = 200
MAX_OBJECT_NAMES = 1000
Name = Annotated[str, Field(pattern=r"^[\w$.%]+$", max_length=4096)]
"""The name of a function in PTX or in an object file; a template's instances can have very long ones."""
CName = Annotated[str, Field(pattern=r"^\w+$", max_length=100)]
CText = Annotated[str, Field(max_length=MAX_C_BYTES)]
FileName = Annotated[str, Field(max_length=4096)]
Sentence = Annotated[str, Field(max_length=MAX_SENTENCE)]
Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class MissingFeature:
    """A feature that the emulator lacks: its name, where the student's code uses it, and advice."""

    what: Sentence
    file: FileName | None
    line: Whole | None
    advice: Sentence

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else ""
        return f"{place}{self.what} is not supported by the emulator; {self.advice}"


@dataclass(frozen=True, slots=True)
class Template:
    """The C text of a function that runs consecutive rows of `operands` numbers each."""

    name: CName
    text: CText
    operands: Whole


@dataclass(frozen=True)
class CFile:
    """A file of C to compile at an optimisation level."""

    name: CName
    text: CText
    level: Literal["-Og", "-O0"]


@dataclass(frozen=True)
class Translated:
    """A translated module: `files` compile on their own; `tables` needs a definition of REGISTERS_n for the nth of
    `kernels`; `header` comes before templates. If there are findings, the rest must not be used."""

    header: Annotated[str, Field(max_length=100)]
    files: Annotated[tuple[CFile, ...], Field(max_length=MAX_FILES)]
    tables: CText
    kernels: Annotated[tuple[Name, ...], Field(max_length=MAX_KERNELS)]
    templates: Annotated[tuple[Template, ...], Field(max_length=MAX_TEMPLATES)]
    findings: Annotated[tuple[MissingFeature, ...], Field(max_length=MAX_FINDINGS)]


@dataclass(frozen=True)
class ObjectNames:
    """Names in a host object: of runtime functions with the suffix of --default-stream per-thread, such as
    cudaMemcpy_ptds, and of the functions through which -rdc=true registers an object."""

    per_thread: Annotated[tuple[Name, ...], Field(max_length=MAX_OBJECT_NAMES)]
    linked: Annotated[tuple[Name, ...], Field(max_length=MAX_OBJECT_NAMES)]
