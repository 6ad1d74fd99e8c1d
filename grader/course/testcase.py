"""Reads `testcases/<assignment>.yaml` into a Suite, and selects testcases by name, range or group."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from grader.base.errors import UsageError
from grader.base.names import did_you_mean
from grader.base.yaml_model import StrictModel, place, read_yaml_model
from grader.course.distributions import Distribution
from grader.course.seeds import Seed, load_secret, public_seed
from grader.operators import Operator, Shape, load_operator
from grader.operators.returned import check_sizes

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
EVERY, PUBLIC = "every", "public"
"""The words that select all testcases, and all samples; `all` are the graded ones."""
_RESERVED = frozenset({"all", EVERY, "secret"})


class GroupModel(StrictModel):
    """One group of testcases in the YAML file. What is graded is hidden, unless the file says otherwise. Without a
    `seed`, the values of a group that is not hidden come from the names of the assignment and the group."""

    name: str
    graded: bool = True
    hidden: bool | None = None
    seed: Annotated[str, Field(min_length=1)] | None = None
    distribution: Distribution | None = Field(default=None, discriminator="kind")
    cases: dict[str, tuple[int | float, ...]] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> GroupModel:
        if self.is_hidden and self.seed is not None:
            raise ValueError("the values of a hidden group come from the secret: remove its seed")
        for name in (self.name, *self.cases):
            if not _NAME.fullmatch(name) or (name in _RESERVED):
                raise ValueError(
                    f"{name!r} cannot be a name: use lower-case letters, digits, - and _, starting with a letter, "
                    f"and none of {', '.join(sorted(_RESERVED))}"
                )
        return self

    @property
    def is_hidden(self) -> bool:
        return self.graded if self.hidden is None else self.hidden


class SuiteModel(StrictModel):
    """The whole YAML file. `operator` is the assignment's name if it is left out; `distribution` is that of the groups
    that have none of their own."""

    assignment: str
    operator: str = ""
    distribution: Distribution | None = Field(default=None, discriminator="kind")
    groups: tuple[GroupModel, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_distributions(self) -> SuiteModel:
        for number, group in enumerate(self.groups):
            if group.distribution is None and self.distribution is None:
                raise ValueError(f"groups[{number}] ({group.name}) has no distribution, and the file has none for all")
        return self


@dataclass(frozen=True)
class Case:
    """One testcase: everything that determines its input, except the seed of a hidden testcase."""

    assignment: str
    name: str
    group: str
    graded: bool
    hidden: bool
    operator: Operator
    shape: Shape
    distribution: Distribution
    public_seed: str | None = None

    @property
    def identity(self) -> str:
        """Everything that determines the values, except the seed and the unit's number."""
        dims = ",".join(map(str, self.shape))
        return f"{self.assignment}/{self.name}/{self.operator.name}/{dims}/{self.distribution}"

    @property
    def input_bytes(self) -> int:
        return self.operator.input_bytes(self.shape)

    @property
    def output_bytes(self) -> int:
        return self.operator.output_bytes(self.shape)

    @property
    def expected_bytes(self) -> int:
        return self.operator.expected_bytes(self.shape)

    @property
    def flops(self) -> int:
        return self.operator.flops(self.shape)


@dataclass(frozen=True)
class Suite:
    """The testcases of an assignment, in the order of the YAML file."""

    path: Path
    assignment: str
    operator: Operator
    cases: dict[str, Case]
    groups: dict[str, tuple[str, ...]]
    nonce: str = ""
    """If not empty, the testcases have other values, determined by their usual seeds and this text."""

    @cached_property
    def secret(self) -> Seed:
        """The secret, which is read or created on first use, since grading on public testcases needs none."""
        return load_secret(self.path.parent)

    def seed(self, case: Case) -> Seed:
        """The seed of a testcase's values."""
        assert case.hidden or case.public_seed is not None
        usual = self.secret if case.hidden else public_seed(case.public_seed or "")
        return usual.fresh(self.nonce) if self.nonce else usual

    def redrawn(self, nonce: str) -> Suite:
        """The same testcases on another draw of values, identified by `nonce`."""
        return replace(self, nonce=nonce)

    def fresh_seed(self, case: Case, nonce: str) -> Seed:
        """A seed for another draw of a testcase, determined by its usual seed and `nonce`."""
        return self.seed(case).fresh(nonce)

    @property
    def graded(self) -> tuple[Case, ...]:
        """The testcases that earn points."""
        return tuple(case for case in self.cases.values() if case.graded)

    def select(self, words: str) -> tuple[Case, ...]:
        """The testcases that `words` select, in the suite's order, each once.

        The words are separated by commas. Each is a testcase (t23), a range in the suite's order (t05..t10), a group,
        `public` for the samples of all groups, `all` for the graded testcases, or `every`. Raises UsageError for an
        unknown name, with the closest names.
        """
        order = list(self.cases)
        chosen: set[str] = set()
        parts = [part.strip() for part in words.split(",") if part.strip()]
        if not parts:
            raise UsageError(f"No testcase is named; there are {self._what_exists()}.")
        for part in parts:
            if part in ("all", EVERY):
                chosen.update(name for name, case in self.cases.items() if case.graded or part == EVERY)
            elif part == PUBLIC and (samples := [n for n, c in self.cases.items() if not (c.graded or c.hidden)]):
                chosen.update((*samples, *self.groups.get(PUBLIC, ())))
            elif part in self.groups:
                chosen.update(self.groups[part])
            elif ".." in part:
                first, last = (self._known(end.strip()) for end in part.split("..", 1))
                start, stop = order.index(first), order.index(last)
                if start > stop:
                    raise UsageError(f"The range {part} runs backwards: write {last}..{first}.")
                chosen.update(order[start : stop + 1])
            else:
                chosen.add(self._known(part))
        return tuple(self.cases[name] for name in order if name in chosen)

    def _known(self, name: str) -> str:
        if name in self.cases:
            return name
        hint = did_you_mean(name, (*self.cases, *self.groups, "all"), most=3)
        raise UsageError(f"{self.assignment} has no testcase {name!r}; there are {self._what_exists()}.{hint}")

    def _what_exists(self) -> str:
        groups = [
            f"{names[0]}..{names[-1]} ({group})" if len(names) > 1 else f"{names[0]} ({group})"
            for group, names in self.groups.items()
        ]
        return f"{', '.join(groups)} and all (the graded ones)"


def load_suite(path: Path) -> Suite:
    """Read a suite. Raises UsageError with the file, the key, the value and what is allowed."""
    model = read_yaml_model(path, SuiteModel)
    try:
        operator = load_operator(model.operator or model.assignment)
    except UsageError as error:
        raise UsageError(f"{place(path, ['operator'])}: {error}") from error
    cases: dict[str, Case] = {}
    groups: dict[str, tuple[str, ...]] = {}
    for number, group in enumerate(model.groups):
        if group.name in groups or group.name in cases:
            raise UsageError(f"{place(path, ['groups', number, 'name'])}: {group.name!r} is used twice; rename one.")
        groups[group.name] = tuple(group.cases)
        distribution = group.distribution or model.distribution
        assert distribution is not None, "validated"
        seed = None if group.is_hidden else group.seed or f"{model.assignment}-{group.name}"
        for name, shape in group.cases.items():
            location = ("groups", number, "cases", name)
            if name in cases or name in groups:
                raise UsageError(f"{place(path, location)}: the name {name!r} is used twice; rename one.")
            if problem := operator.problem(shape):
                raise UsageError(f"{place(path, location)}: the shape {list(shape)} is not legal: {problem}.")
            if not cases:
                check_sizes(operator, operator.canonical(shape))
            cases[name] = Case(
                model.assignment,
                name,
                group.name,
                group.graded,
                group.is_hidden,
                operator,
                operator.canonical(shape),
                distribution,
                seed,
            )
    return Suite(path, model.assignment, operator, cases, groups)
