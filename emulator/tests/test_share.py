"""The share of these tests that continuous integration runs finds a broken instruction, barrier, check and counter.

Each is planted in a copy of the emulator: with GRADER_TEST_EVERYTHING=1, since that takes minutes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = {
    "instruction": ("translate/arith.py", '"~0u" if name == "sub" else "0u"', '"0u"', "test_conformance.py::"),
    "barrier": ("runtime/barriers.c", ": b->threads_alive; }", ": b->threads_alive / 2; }", "test_"),
    "check": ("runtime/shadow.c", "== ORDER_BEFORE || (x", "!= ORDER_NONE_IN_GRID || (x", "test_sanitizers.py::"),
    "counter": ("runtime/counters.c", "*conflicts = n - 1;", "*conflicts = n;", "test_counters.py::"),
}  # fmt: skip
"""A borrow that sub.cc takes from nothing, a barrier that half of a block passes, races of warps with a write, a bank
conflict too many; and what finds it."""


@pytest.mark.skipif(os.environ.get("GRADER_TEST_EVERYTHING") != "1", reason="takes minutes")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("what", FAULTS)
def test_the_share_finds_a_broken(what: str, tmp_path: Path) -> None:
    file, right, wrong, finds = FAULTS[what]
    for each in ROOT.iterdir():
        if each.name not in ("emulator", ".git", ".venv"):
            (tmp_path / each.name).symlink_to(each)
    shutil.copytree(ROOT / "emulator", tmp_path / "emulator", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "emulator/src/cudaemu" / file
    text = path.read_text()
    assert text.count(right) == 1
    path.write_text(text.replace(right, wrong))
    command = f"{sys.executable} -m pytest -p no:cacheprovider -q -x -n 2 emulator/tests --share"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'emulator/src'}{os.pathsep}{tmp_path}"}
    done = subprocess.run(command.split(), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode and f"FAILED emulator/tests/{finds}" in done.stdout, done.stdout[-2000:]
