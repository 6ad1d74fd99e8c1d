"""Reads a CMakeLists.txt as one nvcc command, without running cmake.

It reads add_executable and the commands that set compiler options: include folders, macros, options, standards,
separable compilation, OpenMP. It ignores conditions and knows only variables that an earlier `set` has set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r'#[^\n]*|"([^"]*)"|([()])|([^\s()"#]+)')
_LANGUAGES = re.compile(r"\$<\$<COMPILE_LANGUAGE:(?:CUDA|CXX)>:([^>]*)>")
_HERE = re.compile(r"\$\{(?:CMAKE_CURRENT_SOURCE_DIR|CMAKE_SOURCE_DIR|PROJECT_SOURCE_DIR)\}")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SCOPES = {"PUBLIC", "PRIVATE", "INTERFACE", "SYSTEM", "BEFORE", "AFTER", "WIN32", "EXCLUDE_FROM_ALL", "STATIC"}
_STANDARDS = {"CMAKE_CUDA_STANDARD", "CMAKE_CXX_STANDARD", "CUDA_STANDARD", "CXX_STANDARD"}
_MAX_NESTING = 8
"""Limit on how deep variables are nested: the value of a variable can name other variables."""
_MAX_CHARACTERS = 32_000
"""Limit on the file and on each word, against hostile files. The files of cuda-samples have 2,000 characters."""
_MAX_WORDS = 10_000
_MAX_VALUE_CHARACTERS = 4_000


@dataclass
class _Reading:
    variables: dict[str, str] = field(default_factory=dict)
    programs: dict[str, list[str]] = field(default_factory=dict)
    common: list[str] = field(default_factory=list)
    of_target: dict[str, list[str]] = field(default_factory=dict)
    left: int = 50 * _MAX_CHARACTERS
    """The characters that may still be made from variables."""


def read_cmakelists(text: str, wanted: str) -> list[str]:
    """The nvcc arguments for the first program that has the source `wanted`, or else for the first program; empty
    without a program."""
    reading = _Reading()
    for name, words in _commands(text[:_MAX_CHARACTERS], reading):
        _take(reading, name, words)
    programs = [name for name, sources in reading.programs.items() if any(s.endswith(".cu") for s in sources)]
    chosen = next((name for name in programs if wanted in reading.programs[name]), programs[0] if programs else None)
    if chosen is None:
        return []
    return [*reading.common, *reading.of_target.get(chosen, ()), *reading.programs[chosen]]


def _commands(text: str, reading: _Reading) -> Iterator[tuple[str, list[str]]]:
    """Each command's name and words, with variables replaced by their values at that point."""
    name, depth, seen = "", 0, 0
    words: list[str] = []
    for quoted, bracket, bare in _TOKEN.findall(text):
        if bracket == "(":
            depth += 1
        elif bracket == ")":
            depth -= 1
            if depth == 0:
                yield name.lower(), words
                words = []
        elif depth == 0:
            name = bare
        elif seen < _MAX_WORDS:
            added = [word for word in _LANGUAGES.sub(r"\1", _expanded(quoted or bare, reading)).split(";") if word]
            seen += len(added)
            words += added


def _expanded(text: str, reading: _Reading) -> str:
    text = _HERE.sub(".", text)
    for _ in range(_MAX_NESTING):
        if not _VARIABLE.search(text):
            break
        text = _VARIABLE.sub(lambda found: reading.variables.get(found[1], ""), text)
        reading.left -= len(text)
        if len(text) > _MAX_CHARACTERS or reading.left < 0:
            return ""
    return text


def _take(reading: _Reading, name: str, words: list[str]) -> None:
    if not words:
        return
    if name == "set":
        reading.variables[words[0]] = ";".join(words[1:])[:_MAX_VALUE_CHARACTERS]
        if words[0] in _STANDARDS and len(words) > 1:
            reading.common.append(f"-std=c++{words[1]}")
        elif words[0] in ("CMAKE_CUDA_FLAGS", "CMAKE_CXX_FLAGS"):
            options = [option for word in words[1:] for option in word.split()]
            reading.common += options if "CUDA" in words[0] else [f"-Xcompiler={option}" for option in options]
        return
    if name == "add_executable":
        reading.programs[words[0]] = [word.removeprefix("./") for word in words[1:] if word not in _SCOPES]
        return
    of_target = name.startswith(("target_", "set_target_properties"))
    place = reading.of_target.setdefault(words[0], []) if of_target else reading.common
    values = [word for word in words[of_target:] if word not in _SCOPES]
    match name.removeprefix("target_"):
        case "include_directories":
            place += [f"-I{value}" for value in values]
        case "compile_definitions" | "add_compile_definitions" | "add_definitions":
            place += [f"-D{value.removeprefix('-D')}" for value in values]
        case "compile_options" | "add_compile_options":
            place += values
        case "link_libraries" if any(value.startswith("OpenMP::") for value in values):
            place.append("-Xcompiler=-fopenmp")
        case "set_target_properties":
            properties = dict(zip(values[1::2], values[2::2], strict=False))  # after the word PROPERTIES
            if properties.get("CUDA_SEPARABLE_COMPILATION") == "ON":
                place.append("-rdc=true")
            place += [f"-std=c++{value}" for key, value in properties.items() if key in _STANDARDS]
