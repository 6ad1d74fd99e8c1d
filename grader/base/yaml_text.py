"""Reads a YAML file into plain values with their lines, and avoids YAML's traps.

It refuses a key that is written twice (PyYAML silently keeps the last one), reads `1e-4` as a number (YAML 1.1 makes it
a string), and refuses aliases that would make a small file huge, before it expands them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from grader.base.errors import UsageError
from grader.base.paths import shown

_MAX_NODES = 20_000
"""The most keys and values in a file, with aliases expanded."""
_MAX_DEPTH = 32

Location = Sequence[int | str]
"""The keys and numbers that lead from a file's top to a value."""


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML that the grader refuses; `problem` says why."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, which is ten times as fast if PyYAML was built with libyaml."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{shown(path)} cannot be read ({reason}): check the path and its permissions.") from error


def read_yaml(path: Path) -> tuple[Any, Any]:
    """Read a YAML file as (root node, content); both are None if it is empty. Raises UsageError with the line."""
    text = _text(path)
    try:
        _refuse_depth(text)
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                return None, None
            _size(root, {})
            _refuse_repeated_keys(root)
            return root, loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        what = "" if isinstance(error, _Refused) else "this is not YAML: "
        raise UsageError(f"{shown(path)}{where}: {what}{problem}.") from error
    except (ValueError, OverflowError) as error:  # a date or a number that Python cannot hold
        raise UsageError(f"{shown(path)}: a value cannot be read: {error}.") from error


def _refuse_depth(text: str) -> None:
    depth = 0
    event: Any
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise _Refused(problem=f"it is nested more than {_MAX_DEPTH} deep", problem_mark=event.start_mark)


def _size(node: Any, known: dict[int, int]) -> int:
    """Count `node` and the nodes below it, with aliases expanded. Refuses too many nodes, and cycles."""
    if id(node) in known:
        size = known[id(node)]
    else:
        known[id(node)] = _MAX_NODES + 1  # refuses a node that is met again before its size is known: a cycle
        size = known[id(node)] = 1 + sum(_size(child, known) for child in _children(node))
    if size > _MAX_NODES:
        raise _Refused(
            problem="its aliases expand to too many values: write the values out", problem_mark=node.start_mark
        )
    return size


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [one for pair in node.value for one in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _refuse_repeated_keys(node: Any) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, Any] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused(problem="a key must be a word", problem_mark=key.start_mark)
            if key.value in seen:
                first = seen[key.value].start_mark.line + 1
                raise _Refused(
                    problem=f"the key {key.value!r} is already on line {first}: keep one of the two",
                    problem_mark=key.start_mark,
                )
            seen[key.value] = key
    for child in _children(node):
        _refuse_repeated_keys(child)


def line_of(root: Any, location: Location) -> int:
    """The line, counted from 1, of the deepest node that `location` leads to. Parts that the file does not contain
    (pydantic's names for members of unions) are skipped."""
    line, node = root.start_mark.line, root
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if found is not None:
                line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line
    return int(line) + 1
