"""The packages of grader/: who may import whom, and that nothing hides an import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

from tests.support.course import ROOT

PACKAGE = ROOT / "grader"
PACKAGES = sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file())
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
OPTIONAL = {"copydetect", "pycuda", "submitit", "torch"}
"""Libraries that some machines lack, imported by what needs them."""


@cache
def trees() -> dict[str, ast.Module]:
    """Of the worker that runs these tests: to parse all modules takes two seconds."""
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def is_confined(function: ast.AST) -> bool:
    """Whether a function runs in the room: its decorator is `confined(...)`."""
    decorators = getattr(function, "decorator_list", [])
    return any(isinstance(each, ast.Call) and getattr(each.func, "id", "") == "confined" for each in decorators)


def functions_imports(tree: ast.Module) -> Iterator[str]:
    """The modules that are imported inside functions, except by what runs in the room: the grader itself does not load
    what parses untrusted bytes."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not is_confined(function):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield node.module or ""


def test_imports_follow_the_contracts_in_pyproject(capsys: pytest.CaptureFixture[str]) -> None:
    kept = lint_imports(str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert kept == 0, capsys.readouterr().out


def test_the_top_level_holds_packages_only() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_opens_with_what_it_is_for_and_what_it_may_import(package: str) -> None:
    words = ast.get_docstring(trees()[f"grader.{package}"]) or ""
    assert "May import" in words or "Imports no other package" in words


def test_every_file_in_the_map_of_changes_exists() -> None:
    """A path begins at grader/ or at the repository; a file without a folder is anywhere below grader/."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    words = re.findall(r"`([\w.{},/*-]+)`", text[text.index("## To change X") : text.index("## Words")])
    named = [word for word in words if "/" in word or re.search(r"\w\.(py|c|h|cu|inc|css|js)$", word)]
    anywhere = {path.name for path in PACKAGE.rglob("*")}
    missing = []
    for word in named:
        before, _, rest = word.partition("{")
        choices, _, after = rest.partition("}")
        for path in (before + choice + after for choice in choices.split(",")):
            known = "NAME" in path or path in anywhere
            if not known and not any(any(folder.glob(path.rstrip("/"))) for folder in (ROOT, PACKAGE)):
                missing.append(path)
    assert missing == []


def test_only_commands_and_optional_libraries_are_imported_inside_functions() -> None:
    """What a function imports is left out of the order in which modules load, and so can hide a circle."""
    hidden = {
        (module, imported)
        for module, tree in trees().items()
        if package_of(module) != "commands"
        for imported in functions_imports(tree)
        if imported.partition(".")[0] not in OPTIONAL
    }
    assert hidden == set()


def test_a_module_named_in_a_string_is_of_the_same_package() -> None:
    """Workers are started, and modules loaded, by name: that is an import too."""
    elsewhere = {
        (module, node.value)
        for module, tree in trees().items()
        if package_of(module) != "commands"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in MODULES
        and package_of(node.value) not in ("", package_of(module))
    }
    assert elsewhere == set()


def test_one_submission_is_graded_without_what_belongs_to_classes(tmp_path: Path) -> None:
    """All that grading one file imports is imported before it is read; what prints its record comes after."""
    program = (
        "import sys\nfrom grader.commands.cli import main\n"
        f"try: main(['grade', {str(tmp_path / 'hw4.cu')!r}, '--engine', 'emulator'])\n"
        "except SystemExit: from grader.report import terminal\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {package_of(name) for name in done.stdout.split() if name.startswith("grader.")}
    assert {"course", "programs", "grading", "records", "report"} <= loaded
    assert not {"classes", "store", "site", "gradescope"} & loaded
