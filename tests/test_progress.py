"""Progress of long work: its texts are other people's, folders' names among them."""

import io

import pytest
from rich.console import Console

from grader.base import progress


def test_a_live_bar_takes_a_name_for_text_and_not_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True)
    monkeypatch.setattr(progress, "Console", lambda **_: console)
    with progress.shown_progress() as shown:
        shown.stage("[/nobody]: compiling")
        shown.line("[/nobody] is done")
    assert isinstance(console.file, io.StringIO)
    assert "[/nobody]: compiling" in console.file.getvalue()
