"""What a compiler leaves is looked at before it is kept: a hand-in may have had a say in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cudaemu.process import Completed, Runner
from grader.base.verdict import Fault
from grader.course.assignment import Assignment
from grader.programs.build import build
from grader.programs.engine import select_engine
from grader.programs.engine.interface import Compiled
from grader.programs.submission import read_submission
from grader.sandbox import linker
from tests.support.batch_engine import PlainC


@dataclass(frozen=True)
class Leaves(PlainC):
    """A compiler that ends well, and leaves what a function makes at the program's place."""

    make: Callable[[Path], object] = Path.touch

    def identity(self) -> str:
        return f"leaves {self.make}"

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        self.make(output)
        (output.parent / "build.json").symlink_to("/dev/full")
        return Compiled(None, "")


def executable(path: Path) -> None:
    path.touch(0o755)


def second_name(path: Path) -> None:
    executable(path.with_name("other"))
    path.hardlink_to(path.with_name("other"))


@dataclass(frozen=True)
class Plants:
    """A compiler taken over by what it compiles: in every folder that it may write, it puts links to `victim` under
    the names that the grader is about to write, and it links its folder's subfolders elsewhere."""

    victim: Path
    run: Runner

    def __call__(self, command: Sequence[str], folder: Path) -> Completed:
        done = self.run(command, folder)
        if not command[0].endswith("nvcc"):
            return done
        names = "m0_0.c m0_tables.c runtime.o kept-x.o m0_0.json"
        plant = f"cd {folder.parent} && for d in . * */* */*/*; do [ -d $d ] && cd $d 2>/dev/null || continue; "
        plant += f"for n in {names}; do ln -sf {self.victim} $n; done; cd {folder.parent}; done"
        self.run(["sh", "-c", plant], folder)
        return done


def test_links_that_a_compiler_plants_lead_the_grader_to_no_file(
    rules: Assignment, write: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = write("victim", "untouched")
    source = "__global__ void k(float *x) { *x = 1; }\nint main() { k<<<1, 1>>>(nullptr); }\n"
    submission = read_submission(write("links/hw4.cu", source), rules)

    def planting(*arguments: Any, **named: Any) -> Runner:
        return Plants(victim, linker(*arguments, **named))

    monkeypatch.setattr("grader.programs.build.sandbox.linker", planting)
    made = build(submission, rules, select_engine("emulator", "sm_80"))
    assert victim.read_text() == "untouched"
    assert made.ok, made.log


@pytest.mark.parametrize(
    "make", [lambda path: None, Path.touch, Path.mkdir, lambda path: path.symlink_to("/bin/true"), second_name]
)
def test_what_is_no_program_is_a_compile_error(
    make: Callable[[Path], object], rules: Assignment, write: Callable[[str, str], Path]
) -> None:
    submission = read_submission(write("hw4.cu", "int main() {}"), rules)
    made = build(submission, rules, Leaves(make=make))
    assert made.fault is Fault.STUDENT and "wrote no program" in made.reason


def test_a_program_is_kept_alone(rules: Assignment, write: Callable[[str, str], Path]) -> None:
    submission = read_submission(write("hw4.cu", "int main() {}"), rules)
    made = build(submission, rules, Leaves(make=executable))
    assert made.program is not None
    assert sorted(path.name for path in made.program.parent.iterdir()) == ["build.json", "program"]
    assert build(submission, rules, Leaves(make=executable)).cached
