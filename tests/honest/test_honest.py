"""Honest programs pass, however unusual: one here, all with `make honest`."""

import re
from pathlib import Path

from grader.commands import submissions
from grader.commands.choice import Choice
from tests.honest.__main__ import SAMPLES, complaints, hand_in, variants


def test_every_honest_variant_has_the_headers_that_it_includes(tmp_path: Path) -> None:
    for assignment in SAMPLES:
        for variant in variants(assignment):
            folder = hand_in(variant, tmp_path / assignment)
            for file in folder.rglob("*.cu*"):
                for name in re.findall(r'^#include "(.+)"$', file.read_text(), re.MULTILINE):
                    assert list(folder.rglob(name)), f"{file}: {name}"


def test_an_honest_variant_passes_without_a_flag(tmp_path: Path) -> None:
    variant = next(path for path in variants() if path.stem == "managed_memory")
    folder = hand_in(variant, tmp_path)
    [record] = submissions.grade_paths([folder], Choice("hw4", "s01,s02", "emulator"), quick=True)
    assert record.closer_look is not None
    assert complaints(record) == []
