"""No package grows beyond its budget unnoticed (tools/size.py)."""

from pathlib import Path

from tools import size
from tools.size import Size


def larger(sizes: dict[str, Size], most: dict[str, Size]) -> dict[str, Size]:
    """The sizes that are above the most."""
    allowed = {name: most.get(name, Size(0)) for name in sizes}
    return {n: s for n, s in sizes.items() if s.lines > allowed[n].lines or s.tokens > allowed[n].tokens}


def test_every_package_is_within_its_budget() -> None:
    why = "make it smaller, or raise [tool.grader.size] in pyproject.toml and say why in CHANGELOG.md"
    assert larger(size.sizes(), size.budgets()) == {}, why


def test_no_budget_is_raised_without_a_line_in_the_changelog() -> None:
    assert larger(size.budgets(), size.announced()) == {}


def test_lines_count_as_wc_does_and_explanations_are_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""What."""\n\n\ndef f(x):\n    """Why."""\n    return x + "one"  # because\n')
    assert size.size_of(tmp_path / "a.py") == Size(6, 10)  # def f ( x ) : return x + "one"
    (tmp_path / "a.c").write_text("int x;\n")
    assert size.size_of(tmp_path / "a.c") == Size(1)
