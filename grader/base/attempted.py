"""One step of a command for one of several submissions: what fails becomes that submission's line, and the others are
done."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.verdict import Fault

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failed:
    """A step that failed: the `problem` as a sentence, and whose fault it is as far as the step knows."""

    problem: str
    whose: Fault

    @property
    def headline(self) -> str:
        return self.problem.partition("\n")[0]


def attempted(
    step: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result | Failed:
    """`step(…)`, or how it failed. Every loop over submissions does its steps so."""
    try:
        return step(*arguments, **named)
    except UsageError as problem:
        return Failed(str(problem), Fault.STUDENT)
    except MachineFault as problem:
        return Failed(str(problem), Fault.MACHINE)
    except GraderFault as problem:
        return Failed(str(problem), Fault.GRADER)
    except Exception as bug:
        log.debug("A step failed", exc_info=bug)
        return Failed(f"The grader failed: {type(bug).__name__}: {bug}.", Fault.GRADER)
