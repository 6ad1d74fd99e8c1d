"""Thirty programs that traverse a graph, with bugs and without: what is found is what their labels say."""

import re
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build, execute

SOURCE = HERE / "graphs" / "patterns.cu"
PROGRAMS = [
    (f"{label}__{pattern}_{by}_{bugs}", label)
    for pattern, by, bugs, label in re.findall(r"^LABEL\((\w+), (\w+), (\w+), (\w+)\)", SOURCE.read_text(), re.M)
]


def test_there_are_thirty() -> None:
    assert len(PROGRAMS) == 30


@pytest.mark.parametrize(("name", "label"), PROGRAMS, ids=[name for name, _ in PROGRAMS])
def test_what_is_found_is_what_the_label_says(name: str, label: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE, watch=True), name, folder=tmp_path)
    found = {
        "bounds" if each["check"] == "memory" else "note" if each["is"] == "outdated_read" else each["check"]
        for each in done.findings()
    }
    assert found == set(label.split("_")) - {"clean"}
    assert (done.exit_code != 0) == ("bounds" in found)
