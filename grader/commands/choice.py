"""What --assignment, --tests, --engine and --arch choose: resolved here, for all commands alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from grader.base.errors import UsageError
from grader.course.assignment import Assignment, EmulatedArchitecture, chosen_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.course.testcase import Case, Suite
from grader.grading.setup import Setup
from grader.programs.engine import Engine, select_engines
from grader.programs.engine.emulator import EmulatorEngine


@dataclass(frozen=True)
class Choice:
    """What the options say; None for an option that is left out."""

    assignment: str | None = None
    tests: str | None = None
    engine: str = "auto"
    arch: str | None = None

    def rules(self, path: Path | None = None) -> Assignment:
        """The assignment, by default the one that the files at `path` belong to; for the GPU that --arch names. Raises
        UsageError for an unknown architecture, and for --arch with the engine `cuda`."""
        rules = chosen_assignment(self.assignment, path)
        if self.arch is None:
            return rules
        known = get_args(EmulatedArchitecture)
        if self.arch not in known:
            raise UsageError(f"--arch {self.arch}: the emulator can stand for {', '.join(known)}; choose one of them.")
        if self.engine == "cuda":
            raise UsageError("--arch is for the emulator, and --engine cuda runs on this machine's GPU: leave one out.")
        build = rules.build.model_copy(update={"emulator_target": self.arch})
        return rules.model_copy(update={"build": build})

    @property
    def engine_name(self) -> str:
        return self.engine if self.arch is None else "emulator"

    def engines(self, rules: Assignment) -> tuple[Engine, ...]:
        """One engine for each GPU, or the emulator."""
        return select_engines(self.engine_name, rules.build.emulator_target)

    def cases(self, suite: Suite, engine: Engine) -> tuple[Case, ...]:
        """The testcases; by default all of the graded ones where times are measured, else the public ones."""
        return suite.select(self.tests or ("all" if engine.measures_time else "public"))

    def setup(self, path: Path, *, show: int = 0, quick: bool = False) -> Setup:
        """The setup that grades the files at `path` on one engine."""
        rules = self.rules(path)
        suite, engine = suite_of(rules), self.engines(rules)[0]
        cases = self.cases(suite, engine)
        if quick and isinstance(engine, EmulatorEngine) and not any(case.graded for case in cases):
            engine = replace(engine, short_runs=True)
        return Setup(rules, suite, TestcaseFiles.beside(suite), cases, engine, show, quick)
