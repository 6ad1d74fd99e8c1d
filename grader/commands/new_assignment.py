"""`grader new NAME`: the files of a new assignment, which can be graded at once; every line is there to be changed."""

from __future__ import annotations

import re
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import course_root, shown

_SKELETON = Path(__file__).with_name("skeleton.txt")
_HEADER = Path("reference/sequential.h")


def new_assignment(name: str) -> str:
    """Write the files and return what to do next. Raises UsageError for a name that is taken or cannot be one."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise UsageError(f"{name!r} cannot be a name: use lower-case letters, digits and _, starting with a letter.")
    root = course_root()
    _, *parts = re.split(r"^=== (\S+)\n", _SKELETON.read_text(encoding="utf-8").replace("@NAME@", name), flags=re.M)
    content = {root / path: text for path, text in zip(parts[::2], parts[1::2], strict=True)}
    if there := [path for path in content if path.exists()]:
        raise UsageError(f"{shown(there[0])} exists already: choose another name, or remove it.")
    if not (root / _HEADER).is_file():
        raise UsageError(
            f"{shown(root / _HEADER)} is missing, which every sequential baseline includes: copy it there."
        )
    for path, text in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return "\n".join((
        *(f"wrote {shown(path)}" for path in content),
        "Try it, then change every file (docs/new-assignment.md):",
        f"  grader grade {shown(root / 'reference' / name / 'solution.cu')} --tests public",
        f"  grader assignments verify {name}",
    ))  # fmt: skip
