"""Python submissions, as far as they need no Triton: which file is graded, and what it may not contain."""

import re
from pathlib import Path

import pytest

from cudaemu.extras import Extras
from cudaemu.ptx import Instr, parse
from cudaemu.translate import translate_module
from cudaemu.translate.counting import may_compute_floats
from grader.base.errors import UsageError
from grader.course.assignment import SourceRule, load_assignment
from grader.findings import Finding
from grader.programs.source_rules import _python_violations
from grader.programs.submission import Submission, read_submission
from grader.sanitizers import said_of

PROGRAM = "import triton\n"


def read(folder: Path, files: dict[str, str], name: str = "") -> Submission:
    for file, text in files.items():
        (folder / file).write_text(text)
    return read_submission(folder / name, load_assignment("softmax"))


# ---- which file -----------------------------------------------------------------------------------------------


def test_a_python_file_is_a_submission_of_an_assignment_that_takes_python(tmp_path: Path) -> None:
    submission = read(tmp_path, {"softmax.py": PROGRAM}, "softmax.py")
    assert submission.is_python and submission.sources == ("softmax.py",) and submission.notes == ()


def test_a_folder_with_a_python_program_leaves_out_its_other_files_and_says_so(tmp_path: Path) -> None:
    submission = read(tmp_path, {"softmax.py": PROGRAM, "plot.py": "x = 1\n", "notes.txt": ""})
    assert [name for name, _ in submission.files] == ["softmax.py"]
    assert any(note.startswith("plot.py is left out") for note in submission.notes)


def test_a_script_next_to_a_cuda_program_does_not_make_it_a_python_submission(tmp_path: Path) -> None:
    assert not read(tmp_path, {"softmax.cu": "int main() {}\n", "plot.py": "x = 1\n"}).is_python


@pytest.mark.parametrize(
    ("assignment", "files", "says"),
    [
        ("softmax", {"softmax.py": PROGRAM, "softmax.cu": "int main() {}"}, "a CUDA program and a Python program"),
        ("softmax", {"a.py": PROGRAM, "b.py": PROGRAM}, "none is called softmax.py"),
        ("softmax", {"softmax.py": " \n"}, "is empty"),
        ("hw4", {"hw4.py": PROGRAM}, "expected hw4.cu .* is in Python, which hw4 does not accept"),
        ("softmax", {"notes.txt": ""}, "no .cu or .py file: expected softmax.cu or softmax.py"),
    ],
)
def test_a_folder_that_is_no_clear_submission_is_refused(
    tmp_path: Path, assignment: str, files: dict[str, str], says: str
) -> None:
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    with pytest.raises(UsageError, match=says):
        read_submission(tmp_path, load_assignment(assignment))


# ---- what it may not contain ------------------------------------------------------------------------------------


def test_an_assignment_can_forbid_inline_assembly(tmp_path: Path) -> None:
    submission = read(tmp_path, {"softmax.py": "import triton.language as tl\nx = tl.inline_asm_elementwise\n"})
    rules = load_assignment("softmax")
    forbidding = SourceRule(forbid="inline_assembly", why="write plain code")
    (found,) = _python_violations(submission, rules.model_copy(update={"source_rules": (forbidding,)}))
    assert (found.file, found.line) == ("softmax.py", 2)
    assert not list(_python_violations(submission, rules))


def test_a_finding_at_a_copy_names_the_array_and_no_call_of_cuda() -> None:
    facts: dict[str, object] = {"function": "cudaMemcpy", "count": 4000, "bytes": 4000, "offset": 0, "size": 4000}
    facts |= {"of": "allocation", "by": "cudaMalloc", "allocated_file": "softmax.py", "allocated_line": 1}
    found = Finding.from_facts("never_written", facts, file="softmax.py", line=9)
    for line, array in (("y = empty((1000,))", "`y`"), ("work(empty((1000,)))", "the array made at softmax.py:1")):
        said = said_of(found, [("softmax.py", line.encode())])
        assert said.startswith("softmax.py:9: 4000 of the 4000 bytes") and array in said and "cuda" not in said


# ---- kernels ----------------------------------------------------------------------------------------------------

PTX = Path(__file__).parents[1] / "emulator/tests/triton_softmax.ptx"
"""What Triton 3.9.0 made of the softmax of rows, for sm_80."""
ARITHMETIC = re.compile(r"\b(?:add|sub|mul|fma|div|max|min|ex2)\.\S*f32")


def test_a_kernel_that_only_copies_is_told_from_one_that_computes() -> None:
    text = PTX.read_text()
    copies = "".join(line for line in text.splitlines(True) if not ARITHMETIC.search(line))
    for ptx, computes in ((text, True), (copies, False)):
        body = parse(ptx).functions["softmax"].body
        assert any(may_compute_floats(item) for item in body if isinstance(item, Instr)) == computes


def test_tritons_ptx_is_translated_and_its_lines_are_those_of_the_python_file() -> None:
    module = parse(PTX.read_text())
    translation, findings = translate_module(module, prefix="m0", lanes=8, extras=Extras(watch=True))
    assert not findings and translation.parts
    places = {item.loc for item in module.functions["softmax"].body if isinstance(item, Instr)}
    files = {module.files[place.file] for place in places if place.line}
    assert files == {"/home/student/softmax.py"}, "none is in Triton's own library"
