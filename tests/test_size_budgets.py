"""No package grows beyond its budget unnoticed (tools/size.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import size
from tools.size import Size


@pytest.mark.parametrize("name", sorted(size.sizes()))
def test_a_package_is_within_its_budget(name: str) -> None:
    found, most = size.sizes()[name], size.budgets()[name]
    why = f"{name}: make it smaller, or raise [tool.grader.size] in pyproject.toml and say why in CHANGELOG.md"
    assert found.lines <= most.lines and found.tokens <= most.tokens, why


@pytest.mark.parametrize("name", sorted(size.budgets()))
def test_a_budget_is_not_raised_without_a_line_in_the_changelog(name: str) -> None:
    budget, said = size.budgets()[name], size.announced().get(name, Size(0))
    assert budget.lines <= said.lines and budget.tokens <= said.tokens


def test_lines_count_as_wc_does_and_explanations_are_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""What."""\n\n\ndef f(x):\n    """Why."""\n    return x + "one"  # because\n')
    assert size.size_of(tmp_path / "a.py") == Size(6, 10)  # def f ( x ) : return x + "one"
    (tmp_path / "a.c").write_text("int x;\n")
    assert size.size_of(tmp_path / "a.c") == Size(1)
