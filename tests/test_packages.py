"""The packages of the grader and the emulator: who may import whom, and that nothing hides an import."""

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
EMULATOR = ROOT / "emulator/src/cudaemu"
PACKAGES = sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").is_file())
MODULES = {
    ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in (PACKAGE, EMULATOR)
    for path in sorted(folder.rglob("*.py"))
}
OPTIONAL = {"copydetect", "pycuda", "submitit", "torch"}
"""Libraries that some machines lack, imported by what needs them."""


@cache
def trees() -> dict[str, ast.Module]:
    """Of the worker that runs these tests: to parse all modules takes two seconds."""
    return {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}


def package_of(module: str) -> str:
    return "cudaemu" if module.startswith("cudaemu") else module.partition(".")[2].partition(".")[0]


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
    """A path begins at grader/, at emulator/src/ or at the repository; a file without a folder is anywhere below."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    words = re.findall(r"`([\w.{},/*-]+)`", text[text.index("## To change X") : text.index("## Words")])
    named = [word for word in words if "/" in word or re.search(r"\w\.(py|c|h|cu|inc|css|js)$", word)]
    anywhere = {path.name for folder in (PACKAGE, EMULATOR) for path in folder.rglob("*")}
    missing = []
    for word in named:
        before, _, rest = word.partition("{")
        choices, _, after = rest.partition("}")
        for path in (before + choice + after for choice in choices.split(",")):
            known = "NAME" in path or path in anywhere
            if not known and not any(any(folder.glob(path.rstrip("/"))) for folder in (ROOT, PACKAGE, EMULATOR.parent)):
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
    modules = set(done.stdout.split())
    loaded = {package_of(name) for name in modules if name.startswith("grader.")}
    assert {"course", "programs", "grading", "records", "report"} <= loaded
    assert not {"classes", "store", "site", "gradescope"} & loaded
    assert not {"grader.commands.doctor", "grader.commands.inspection", "jinja2", "sqlite3"} & modules


PARSERS = ("cudaemu.ptx", "cudaemu.analysis", "cudaemu.translate", "tarfile", "zipfile")
"""Modules that parse what a submission controls. Only what runs in the room may use them (`sandbox/room.py`)."""
PACKERS = {
    "grader.base.packing",  # writes only
    "grader.commands.judge_client",
    "grader.gradescope.bundle",
}
"""Modules that use zipfile to write archives, or for those that the grader itself made."""


def test_untrusted_bytes_are_parsed_in_the_room_only() -> None:
    """A parser is imported by other parsers, inside a confined function, or by nobody. `sandbox/archive.py` has both:
    what is confined, and helpers that only the confined function calls."""
    reached = set()
    for module, tree in trees().items():
        if module.startswith(PARSERS) or module in PACKERS or module == "grader.sandbox.archive":
            continue
        inside = {node for function in ast.walk(tree) if is_confined(function) for node in ast.walk(function)}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if node not in inside and any(f"{name}.".startswith(f"{each}.") for name in names for each in PARSERS):
                reached.add((module, *names))
    assert reached == set()


def test_what_reads_an_archive_is_called_by_the_confined_function_only() -> None:
    tree = trees()["grader.sandbox.archive"]
    callers = {
        (function.name, node.id)
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id in ("_zip", "_tar", "_taken")
    }
    assert {caller for caller, _ in callers} == {"_unpacked"}


READERS = {
    "grader.checking.contradictions": ("_nothing_launched", "_empty_kernel", "_inputs_copied"),
    "grader.checking.slips": ("_narrow_sums", "_sizes_in_values", "_whole_quotients", "_narrow_guards"),
    "grader.checking.watch.recording": ("read_recording",),
    "grader.cpp.calls": ("calls_in", "_tokens"),
    "grader.cpp.reading": ("_read", "read_source"),
    "grader.cpp.tree": ("parsed",),
    "grader.programs.cmakelists": ("read_cmakelists",),
    "grader.programs.compile_errors": ("_open_brace", "_kernel_at"),
    "grader.programs.compiler_calls": ("calls", "program_calls"),
    "grader.programs.makefile": ("sort_flags",),
    "grader.programs.source_rules": ("judge", "_broken"),
    "grader.report.source_diff": ("changes",),
    "grader.site.annotate": ("annotated", "messages_of"),
    "grader.site.record_page": ("report_of",),
}
"""Functions that read what submissions, compilers, tools, records or stores contain. Only what runs in the room calls
them, or another function of these."""
IN_THE_PROCESS = {
    "grader.programs.trace.reader": "not in the room",
    "grader.records.record": "in the grader's own process",
    "grader.store.foreign": "in the grader's own process",
}
"""Modules that read such bytes elsewhere, and words with which they say why that is safe."""


def test_what_reads_untrusted_text_is_called_in_the_room_only() -> None:
    readers = {name for names in READERS.values() for name in names}
    found: set[tuple[str, str, str]] = set()
    known: set[str] = set()
    for module, tree in trees().items():
        named = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name in READERS.get(node.module or "", ())
        }
        named |= set(READERS.get(module, ()))
        for function in tree.body:
            name = getattr(function, "name", "")
            known |= {name} & readers
            if name in READERS.get(module, ()) or is_confined(function) or isinstance(function, ast.ImportFrom):
                continue
            found |= {
                (module, name, node.id)
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and node.id in named
            }
    assert known == readers
    assert found == set()


def test_what_is_read_in_the_graders_own_process_says_why() -> None:
    for module, words in IN_THE_PROCESS.items():
        tree = trees()[module]
        documented: list[ast.Module | ast.FunctionDef] = [tree]
        documented += [each for each in tree.body if isinstance(each, ast.FunctionDef)]
        texts = [ast.get_docstring(each) for each in documented]
        assert any(words in " ".join((text or "").split()) for text in texts), module


def test_records_of_others_are_parsed_by_one_module() -> None:
    """`read_records` and `record_in` are its limits; a job's result on Slurm is the grader's own."""
    parsers = {
        module
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("model_validate_json", "model_validate")
        and isinstance(node.value, ast.Name)
        and node.value.id == "Record"
    }
    assert parsers == {
        "grader.records.record",
        "grader.store.exchange",  # in the room
        "grader.classes.executors.slurm",
    }


def test_the_grader_itself_never_loads_a_parser_of_ptx(tmp_path: Path) -> None:
    source = tmp_path / "hw4.cu"
    source.write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); return 0; }\n")
    program = (
        "import sys\nfrom grader.commands.cli import main\n"
        f"try: main(['run', {str(source)!r}, '--engine', 'emulator'])\nexcept SystemExit: pass\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "cudaemu.build" in done.stdout
    assert "cudaemu.ptx" not in done.stdout and "cudaemu.translate" not in done.stdout.split()


def test_text_reaches_a_persons_terminal_through_one_function() -> None:
    """Records and stores quote submissions, and can come from elsewhere: `say` prints no control character."""
    prints = {
        module
        for module, tree in trees().items()
        if package_of(module) in ("commands", "report", "site", "classes", "judge")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert prints == set()
