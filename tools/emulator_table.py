"""Writes what the emulator supports, and what it lacks, from its code into docs/emulator.md.

    python -m tools.emulator_table [--write docs/emulator.md]

Only the part between the page's two markers is written.
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from tabulate import tabulate

from cudaemu import lacking
from cudaemu.isa import RUNTIME
from cudaemu.translate.writer import HANDLERS

BEGIN = "<!-- python -m tools.emulator_table --write docs/emulator.md writes from here -->"
END = "<!-- to here -->"


def instructions() -> dict[str, list[str]]:
    """The first words of supported PTX instructions, by the description in each family's file."""
    families: dict[str, list[str]] = {}
    for op, handler in HANDLERS.items():
        doc = importlib.import_module(handler.__module__).__doc__ or ""
        title = re.split(r"[.:](?:\s|$)", doc.strip(), maxsplit=1)[0].replace("\n", " ")
        families.setdefault(title, []).append(op)
    return {title: sorted(ops) for title, ops in sorted(families.items())}


def functions() -> dict[str, list[str]]:
    """The functions of the runtime API that work, by the description in each file."""
    found: dict[str, list[str]] = {}
    for path in sorted(RUNTIME.glob("*.c")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^(?:cudaError_t|const char \*|struct cudaChannelFormatDesc) ?(cuda[A-Z]\w*)\(", text, re.M)
        if names:
            title = re.split(r"[.:;]\s", text.removeprefix("/*").strip(), maxsplit=1)[0]
            found[" ".join(title.replace("*", " ").split())] = sorted(names)
    return found


def absent() -> Iterator[tuple[str, str, str]]:
    """(`function`, missing feature, remedy) of the functions that return cudaErrorNotSupported."""
    text = (RUNTIME / "absent.inc").read_text(encoding="utf-8")
    shared = {name: (what, advice) for name, what, advice in re.findall(r'^#define (\w+) "(.*)", "(.*)"$', text, re.M)}
    for name, common, what, advice in re.findall(r'^ABSENT\((\w+), (?:(\w+)|"(.*)", "(.*)")\)$', text, re.M):
        yield (f"`{name}`", *(shared[common] if common else (what, advice)))


def tables() -> str:
    """The generated part of the page."""
    refused = {f"`{op}`": row for op, row in lacking.INSTRUCTIONS.items()}
    refused["a call with `<<< >>>` in a kernel"] = lacking.DYNAMIC_PARALLELISM
    unlinked = {f"`{prefix}…`": row for prefix, row in lacking.FUNCTIONS.items() if prefix != "cuda"}
    sections = (
        ("PTX instructions that run", ("family", "instructions"), _named(instructions())),
        ("PTX instructions that are refused", ("instruction", *_MISSING), _merged(_rows(refused))),
        ("Functions of the runtime API that work", ("subject", "functions"), _named(functions())),
        ("Functions that return cudaErrorNotSupported", ("function", *_MISSING), _merged(absent())),
        ("Functions that are refused when the program is linked", ("function", *_MISSING), _merged(_rows(unlinked))),
    )
    return "\n".join(
        f"## {title}\n\n{tabulate(rows, headers, tablefmt='github', disable_numparse=True)}\n"
        for title, headers, rows in sections
    )


_MISSING = ("what it is for", "instead")


def _named(groups: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(title, " ".join(f"`{name}`" for name in names)) for title, names in groups.items()]


def _rows(table: dict[str, lacking.Lacking]) -> Iterator[tuple[str, str, str]]:
    return ((name, row.what, row.advice) for name, row in table.items())


def _merged(rows: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """One row for all functions that lack the same feature and have the same remedy."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, what, advice in rows:
        names.setdefault((what, advice), []).append(name)
    return [(" ".join(names[key]), *key) for key in names]


def page(old: str) -> str:
    """The page with its generated part written anew."""
    return with_part(old, BEGIN, tables())


def with_part(old: str, begin: str, text: str) -> str:
    """A page with `text` between the marker `begin` and END. Raises ValueError when a marker is missing."""
    before, found_begin, rest = old.partition(begin)
    _, found_end, after = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"the page needs the lines {begin!r} and {END!r}, between which the tables go")
    return f"{before}{begin}\n\n{text}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables into this page")
    options = parser.parse_args()
    if options.write is None:
        print(tables())
    else:
        options.write.write_text(page(options.write.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
