"""Names and texts of others, made fit to be printed."""

from __future__ import annotations

import os
import unicodedata

import pytest

from grader.base.names import printable_name, spelled_out, student_id


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoë Ångström 🦊", "Zoë Ångström 🦊"),
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("two\r\nlines\t.", "two\nlines\t."),
        ("over\rwritten", "over\\rwritten"),
        ("evil\u202egnp.cu", "evil\\u202egnp.cu"),
        (os.fsdecode(b"caf\xe9"), "caf\\udce9"),
    ],
)
def test_what_would_command_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    assert spelled_out(text) == shown
    shown.encode()


def test_names_are_one_line_and_ids_are_the_same_however_accents_are_encoded() -> None:
    assert printable_name("a\nb\tc") == "a\\nb\\tc"
    assert {student_id(unicodedata.normalize(form, " zoë ")) for form in ("NFC", "NFD")} == {"zoë"}
