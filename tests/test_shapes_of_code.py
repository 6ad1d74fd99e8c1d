"""Functions and classes stay small enough to be understood at their call, and names mean one thing.

Parameters are those with a name of their own: `*rest` counts as none. Fields are those that a class body lists, which
one reads in one place: inherited ones are not counted. With them, `Assignment` has 22: the keys of assignment.yaml are
flat, and are promises.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.test_packages import trees

MOST_PARAMETERS, MOST_FIELDS = 8, 20
RECORDS = {"grader.records.record.Record", "grader.records.record.TestRecord"}
"""Their keys are promises to other tools."""

NAMED_TWICE = {
    "Answer", "Block", "Branch", "Call", "Code", "Constant", "Ended", "Found", "Function", "Gpu", "Graph",
    "Group", "Interval", "Kernel", "Kind", "Label", "Launch", "Layout", "Limits", "Line", "Names", "Occupancy",
    "Outcome", "Piece", "Place", "Problem", "Recording", "Refused", "Report", "Row", "Step",
    "Student", "Tensor", "Traffic", "Use", "Variable", "Violation", "Way", "Weights",
}  # fmt: skip
"""Names that several classes have, in packages of which none imports the other's. No name may be added."""


def defined() -> Iterator[tuple[str, ast.AST]]:
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{module}.{node.name}", node


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether typer reads its options from its parameters."""
    options = (annotation for each in function.args.args if (annotation := each.annotation) is not None)
    return any(ast.unparse(each).startswith("Annotated[") or "Option" in ast.unparse(each) for each in options)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    return len([*given.posonlyargs, *given.args, *given.kwonlyargs])


def test_no_function_has_many_parameters_but_commands() -> None:
    functions = [(n, each) for n, each in defined() if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    many = {name: parameters(each) for name, each in functions if not is_command(each)}
    assert {name: count for name, count in many.items() if count > MOST_PARAMETERS} == {}


def test_no_class_has_many_fields_but_the_records() -> None:
    classes = [(name, each) for name, each in defined() if isinstance(each, ast.ClassDef) and name not in RECORDS]
    fields = {name: sum(isinstance(line, ast.AnnAssign) for line in each.body) for name, each in classes}
    assert {name: count for name, count in fields.items() if count > MOST_FIELDS} == {}


def test_a_word_of_the_glossary_is_the_name_of_one_class() -> None:
    names = Counter(each.name for _, each in defined() if isinstance(each, ast.ClassDef))
    twice = {name for name, count in names.items() if count > 1 and not name.startswith("_")}
    text = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ,()-]+) \| [^|]+ \|$", text.partition("## Words")[2], re.MULTILINE)
    words = {word.strip().title().replace(" ", "") for row in rows for word in re.sub(r"\(.*\)", "", row).split(",")}
    assert len(words) > 40 and not twice & words
    assert twice == NAMED_TWICE
