"""Counts the lines (as `wc -l`) and the tokens of each package, next to its budget.

    python -m tools.size            a table
    python -m tools.size --budgets  what [tool.grader.size] of pyproject.toml would be for what is there now

Tokens are names, numbers, operators and texts of Python, without comments and docstrings: they do not grow with
explanations, nor with lines that are broken for their length. C files count in lines alone. Raising a budget needs an
entry "Size budgets" in CHANGELOG.md that names it and says why: tests/test_size_budgets.py.
"""

from __future__ import annotations

import argparse
import ast
import re
import tokenize
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
EMULATOR = ROOT / "emulator/src/cudaemu"
_COUNTED = (tokenize.OP, tokenize.NAME, tokenize.NUMBER, tokenize.STRING)
_C_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc")
_ROOM = 0.02
"""How much larger than what is there a new budget is."""


@dataclass(frozen=True)
class Size:
    lines: int
    tokens: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.lines + other.lines, self.tokens + other.tokens)


def size_of(file: Path) -> Size:
    """The size of one file."""
    lines = file.read_bytes().count(b"\n")
    if file.suffix != ".py":
        return Size(lines)
    with tokenize.open(file) as opened:
        docstrings = _docstrings(ast.parse(opened.read()))
    with file.open("rb") as binary:
        found = [each for each in tokenize.tokenize(binary.readline) if each.type in _COUNTED]
    return Size(lines, sum(each.start not in docstrings for each in found))


def _docstrings(tree: ast.Module) -> set[tuple[int, int]]:
    """Where texts stand that are statements of their own."""
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    texts = (node.value for node in statements if isinstance(node.value, ast.Constant))
    return {(text.lineno, text.col_offset) for text in texts if isinstance(text.value, str)}


@cache
def sizes() -> dict[str, Size]:
    """The size of every package of `grader`, of `cudaemu`, of the C code in all of them, and of the tests."""
    packages = sorted(folder for folder in (ROOT / "grader").iterdir() if (folder / "__init__.py").is_file())
    groups = {folder.name: [*folder.rglob("*.py")] for folder in (*packages, EMULATOR)}
    groups["tests"] = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "emulator/tests").rglob("*.py"), ROOT / "conftest.py"]
    found = {name: sum(map(size_of, files), Size(0)) for name, files in groups.items()}
    c_files = (file for tree in (ROOT / "grader", EMULATOR) for file in tree.rglob("*") if file.suffix in _C_SUFFIXES)
    return {**found, "c": sum(map(size_of, c_files), Size(0))}


def budgets() -> dict[str, Size]:
    """The budgets in pyproject.toml."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {name: Size(*pair) for name, pair in content["tool"]["grader"]["size"].items()}


def announced() -> dict[str, Size]:
    """The largest budget of each package that CHANGELOG.md names, as `judge 3600/21000`."""
    found: dict[str, Size] = {}
    for entry in re.split(r"\n(?=- )", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        for name, lines, tokens in re.findall(r"\b([a-z]+)\s+(\d+)/(\d+)", entry) if "Size budgets" in entry else ():
            before = found.get(name, Size(0))
            found[name] = Size(max(before.lines, int(lines)), max(before.tokens, int(tokens)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budgets", action="store_true", help="print budgets for what is there now")
    found = sizes()
    if parser.parse_args().budgets:
        for name, size in found.items():
            print(f"{name} = [{round(size.lines * (1 + _ROOM))}, {round(size.tokens * (1 + _ROOM))}]")
        return
    allowed = budgets()
    print(f"{'':14}{'lines':>8}{'budget':>8}{'tokens':>10}{'budget':>10}")
    python = sum((size for name, size in found.items() if name not in ("tests", "c")), Size(0))
    for name, size in (found | {"grader, Python": python}).items():
        most = allowed.get(name, Size(0))
        print(f"{name:14}{size.lines:8,}{most.lines or '':>8}{size.tokens:10,}{most.tokens or '':>10}")


if __name__ == "__main__":
    main()
