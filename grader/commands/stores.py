"""Chooses a class's store, and maintains it: `grader store export`, `import`, `check`, `vacuum`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import shown
from grader.course.assignment import assignment_names
from grader.store import Store, check_store, default_store, export_store, import_files, open_store, vacuum_store


@contextmanager
def open_chosen(store: Path | None, assignment: str | None) -> Iterator[tuple[Store, str]]:
    """Open the chosen store, as (store, chosen assignment). Raises UsageError if the choice is ambiguous."""
    if store is None:
        names = [assignment] if assignment else [name for name in assignment_names() if default_store(name).exists()]
        if len(names) != 1:
            raise UsageError(
                "Which store? Name one with --store: "
                + (", ".join(str(default_store(name)) for name in names) or "results/ here has none")
                + "."
            )
        store = default_store(names[0])
    with open_store(store) as opened:
        held = opened.assignments()
        if assignment is None and len(held) != 1:
            what = f"records of {', '.join(held)}: name one with --assignment" if held else "no record"
            raise UsageError(f"{shown(store)} holds {what}.")
        if assignment is not None and assignment not in held:
            raise UsageError(f"{shown(store)} holds records of {', '.join(held) or 'nothing'}, not of {assignment}.")
        yield opened, assignment or held[0]


def export(store: Path, target: Path) -> str:
    """Write a store as JSON lines. Return a report on what was written and what was lost."""
    with open_store(store, damaged=True) as opened:
        counts, lost = export_store(opened, target)
    text = ", ".join(f"{count} {kind}{'' if kind == 'points' or count == 1 else 's'}" for kind, count in counts.items())
    return "\n".join([f"{text or 'nothing'} written to {shown(target)}.", *(f"LOST: {what}" for what in lost)])


def import_into(store: Path, files: Sequence[Path]) -> str:
    """Import exports and records into a store."""
    with open_store(store, create=True) as opened:
        added, known = import_files(opened, files)
    return f"{added} record{'s' * (added != 1)} added to {shown(store)}; already there: {known}."


def examine(store: Path) -> tuple[str, bool]:
    """Check a store. Return a report, and whether the store is sound."""
    with open_store(store, damaged=True) as opened:
        problems = check_store(opened)
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in opened.counts().items())
    if problems:
        return "\n".join(problems), False
    return f"{shown(store)} is sound: {counts}.", True


def shrink(store: Path) -> str:
    """Rewrite a store's file to remove its unused space."""
    with open_store(store) as opened:
        before, after = vacuum_store(opened)
    return f"{shown(store)}: {before:,} bytes before, {after:,} after."
