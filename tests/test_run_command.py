"""`grader run`: what follows the program is the program's."""

from pathlib import Path

import pytest

from grader.commands import cli, submissions
from tests.support.command_line import grader

ECHO = """
#include <cstdio>
int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++) printf("%s|", argv[i]);
}
"""


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    (tmp_path / "echo.cu").write_text(ECHO)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["echo.cu", "-n", "5", "-wA=32", "--device=0", "-h", "-v"], "-n|5|-wA=32|--device=0|-h|-v|"),
        (["echo.cu", "IN", "OUT", "--engine", "emulator", "--sanitize", "race"], "IN|OUT|"),
        (["--engine", "emulator", "echo.cu", "--help", "--", "--engine", "x", "--"], "--help|--engine|x|--|"),
        (["echo.cu", "--engine=emulator", "--", "-n"], "-n|"),
    ],
)
def test_options_after_the_program_reach_it_but_for_the_graders_own(words: list[str], printed: str, echo: Path) -> None:
    said = grader("run", *words, cwd=echo)
    assert said.out == f"./echo|{printed}", said.err


def test_an_option_without_its_value_is_explained(echo: Path) -> None:
    said = grader("run", "echo.cu", "--engine", cwd=echo)
    assert said.code == 2
    assert "--engine needs a value; write it after -- if it is meant for the program" in said.err


def test_a_check_that_does_not_exist_is_refused_before_the_build(echo: Path) -> None:
    said = grader("run", "echo.cu", "--engine", "emulator", "--sanitize", "races", cwd=echo)
    assert said.code == 2
    assert "there is no check 'races'; choose from memory, race, init, sync, or all" in said.err


def test_a_build_that_fails_is_told_once(echo: Path) -> None:
    (echo / "bad.cu").write_text("int main() { return nothing; }\n")
    said = grader("run", "bad.cu", "--engine", "emulator", cwd=echo)
    assert said.err.count('identifier "nothing" is undefined') == 1


def test_of_a_folder_with_several_programs_one_is_to_be_named(echo: Path) -> None:
    (echo / "other.cu").write_text(ECHO)
    assert "2 programs (echo.cu, other.cu)" in grader("run", ".", cwd=echo).err


def test_a_program_called_like_an_assignment_whose_submissions_are_functions_is_a_program(echo: Path) -> None:
    (echo / "sort.cu").write_text(ECHO)
    said = grader("run", "sort.cu", "5", "--engine", "emulator", cwd=echo)
    assert (said.code, said.out) == (0, "./sort|5|"), said.err


@pytest.mark.parametrize(("words", "shown"), [([], False), (["-v"], True)])
def test_what_a_fault_of_the_grader_recommends_works(
    words: list[str], shown: bool, echo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> int:
        raise KeyError("a bug")

    monkeypatch.setattr(submissions, "run_program", fails)
    with pytest.raises(SystemExit):
        cli.main([*words, "run", str(echo / "echo.cu"), "-v"])
    said = capsys.readouterr().err
    assert "please report it" in said
    assert ("Traceback" in said) is shown
