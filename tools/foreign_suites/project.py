"""Makes one program of a suite a separate project: its folder, and its files from folders that programs share.

Suites reach these with `../../../Common` or `../include`; a submission may not. Each becomes a folder of the project
with the headers and sources that are used of it, and the paths are rewritten.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools.foreign_suites.layouts import Program, texts_in

_ABOVE = re.compile(r"(?:\$\{CMAKE_CURRENT_SOURCE_DIR\}/)?((?:\.\./)+)([\w.-]+(?:/[\w.-]+)*)")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_MOST_DATA_BYTES = 64 << 20


def copy_project(program: Program, root: Path, target: Path) -> None:
    """Copy `program` of the suite at `root` into the new folder `target`."""
    shutil.copytree(program.folder, target, symlinks=True, ignore=_ignored)
    shared: dict[str, Path] = {}
    for file in list(texts_in(target)):
        depth = len(file.relative_to(target).parts) - 1
        original = program.folder / file.relative_to(target)

        def moved(found: re.Match[str], depth: int = depth, original: Path = original) -> str:
            there = (original.parent / found[1] / found[2]).resolve()
            if not there.exists() or not there.is_relative_to(root.resolve()) or there.is_relative_to(program.folder):
                return found[0]
            folder = there if there.is_dir() else there.parent
            shared[folder.name] = folder
            return "../" * depth + folder.name + ("" if there.is_dir() else f"/{there.name}")

        text = file.read_text(errors="surrogateescape")
        if (rewritten := _ABOVE.sub(moved, text)) != text:
            file.write_text(rewritten, errors="surrogateescape")
    for name in shared:
        (target / name).mkdir(exist_ok=True)
    _copy_used(target, shared)


def _copy_used(target: Path, shared: dict[str, Path]) -> None:
    """Copy from the shared folders what the project's texts name, and what that includes in turn."""
    waiting = list(texts_in(target))
    while waiting:
        text = waiting.pop().read_text(errors="replace")
        names = {*_INCLUDE.findall(text)}
        for name, folder in shared.items():
            wanted = names | set(re.findall(rf"\b{re.escape(name)}/([\w./-]+)", text))
            for file in sorted(wanted):
                source, copy = folder / Path(file).name if "/" not in file else folder / file, target / name / file
                if source.is_file() and not copy.exists() and source.resolve().is_relative_to(folder):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, copy)
                    waiting.append(copy)


def _ignored(folder: str, names: list[str]) -> list[str]:
    """Links, what builds left, and files that are too large."""
    paths = {name: Path(folder) / name for name in names}
    return [
        name
        for name, path in paths.items()
        if path.is_symlink() or name.startswith(".") or (path.is_file() and path.stat().st_size > _MOST_DATA_BYTES)
    ]
