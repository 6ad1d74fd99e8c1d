"""Work on other people's text: its result comes back, and at a limit it is given up."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from grader.base.errors import MachineFault
from grader.base.remote import Remote
from grader.sandbox.bounded import Bounded, Exceeded


def test_results_and_errors_come_back() -> None:
    bounded = Bounded(60, 1 << 30)
    assert bounded.call(sorted, [3, 1, 2]) == [1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        bounded.call(divmod, 1, 0)
    assert bounded.call(len, "after an error") == 14


def test_what_takes_too_long_is_given_up_and_the_next_call_works() -> None:
    bounded = Bounded(0.5, 1 << 30)
    with pytest.raises(Exceeded, match=r"took longer than 0\.5 s"):
        bounded.call(time.sleep, 60)
    assert Bounded(60, 1 << 30).call(len, "x") == 1
    with pytest.raises(Exceeded, match=r"took longer than 0\.5 s"):
        bounded.call(re.search, "(x+x+)+y", "x" * 40)


def test_what_takes_too_much_memory_is_given_up() -> None:
    bounded = Bounded(60, 1 << 28)
    with pytest.raises(Exceeded, match=r"took more memory than 0\.25 GiB"):
        bounded.call(bytes, 1 << 30)
    assert bounded.call(len, "x") == 1


def test_an_interpreter_that_this_user_may_not_run_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/etc/passwd")
    with pytest.raises(MachineFault, match="/etc/passwd: Permission denied"):
        Remote()


def test_a_submissions_files_are_not_taken_for_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An assistant may start the grader in a submission's folder."""
    for name in ("copy", "dataclasses", "numpy", "pickle", "struct"):
        (tmp_path / f"{name}.py").write_text(f"open('ran', 'w').write({name!r})\n")
    monkeypatch.chdir(tmp_path)
    assert Bounded(60, 1 << 30).call(len, "x") == 1
    assert not (tmp_path / "ran").exists()
