"""Python submissions, as far as they need no Triton: which file is graded, and what it may not contain."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader import sandbox
from grader.base.errors import MachineFault, UsageError
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check
from grader.commands import submissions
from grader.course.assignment import load_assignment
from grader.emulator.ptx import Instr, parse
from grader.emulator.translate import translate_module
from grader.emulator.translate.counting import may_compute_floats
from grader.emulator.translation import _without_lines_in_assembly
from grader.grading import closer_look
from grader.grading.judgement import Judgement, judge
from grader.programs.build import build_to_grade
from grader.programs.engine import python_program
from grader.programs.engine.interface import Compiled, Launch
from grader.programs.engine.python_program import syntax_problem
from grader.programs.python_rules import broken_rules
from grader.programs.run import Run
from grader.programs.source_rules import _python_violations, refusal
from grader.programs.submission import Submission, read_submission
from grader.programs.toolkit import find_toolkit
from grader.programs.trace import Diagnostic, KernelEvent, Trace
from grader.python import layout
from grader.python.layout import code_hash, kernel_name
from grader.sandbox import Outcome
from grader.sanitizers import sentence
from tests.support.course import ROOT

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

DATA = "import numpy as np\nx = np.fromfile('x', np.float32, offset=8).reshape(2, -1)\n"
ATTACKS = {
    "runs code from a string": "exec('x = 1')",
    "evaluates a string": "y = eval('1')",
    "hides exec behind a name": "run = exec\nrun('x = 1')",
    "compiles code": "code = compile('x', 'f', 'exec')",
    "imports by a function": "m = __import__('ctypes')",
    "reaches built-ins": "b = __builtins__",
    "finds attributes by computed names": "getattr(object, '__sub' + 'classes__')",
    "sets attributes by name": "import time\nsetattr(time, 'perf_counter', lambda: 0)",
    "walks the subclasses": "().__class__.__base__.__subclasses__()",
    "reaches a function's globals": "(lambda: 0).__globals__",
    "replaces a function's code": "def f(): pass\nf.__code__ = None",
    "changes a clock": "import time\ntime.perf_counter = lambda: 0.0",
    "changes a clock under another name": "import time as t\nt.time = lambda: 0.0",
    "changes numpy": "import numpy as np\nnp.exp = None",
    "deletes from a module": "import triton\ndel triton.jit",
    "changes a module's table": "import triton\ntriton.language.core.table['x'] = 1",
    "looks at the frames above": "import sys\nframe = sys._getframe(1)",
    "walks from a frame": "def f(frame): return frame.f_back",
    "walks from a generator": "g = (i for i in ())\nframe = g.gi_frame",
    "walks from an error": "try: 1 / 0\nexcept Exception as e: f = e.tb_frame",
    "reads the loaded modules": "import sys\nm = sys.modules",
    "reads the loaded modules by another name": "from sys import modules",
    "traces calls": "import sys\nsys.settrace(None)",
    "collects objects": "import gc",
    "inspects": "import inspect",
    "calls C": "import ctypes",
    "calls C through numpy": "import numpy as np\nlib = np.ctypeslib.load_library('x', '.')",
    "takes an array's pointer": "import numpy as np\np = np.zeros(1).ctypes.data",
    "starts a program": "import subprocess",
    "installs packages": "import pip",
    "starts a thread": "import threading",
    "starts processes": "import multiprocessing",
    "opens sockets": "import socket",
    "reads the environment": "import os",
    "imports late": "import importlib",
    "hides an import in a function": "def f():\n    import signal",
    "uses a library for the work": "import torch",
    "imports the grader": "from grader.python import library",
    "imports Triton's driver as a value": "from triton.runtime import driver\nf(driver)",
    "sets another driver that it imported": "from triton.runtime import driver\ndriver.set_active(None)",
    "keeps the driver": "import triton\nactive = triton.runtime.driver.active",
    "sets another driver": "import triton\ntriton.runtime.driver.set_active(None)",
    "turns Triton's knobs": "import triton\ntriton.knobs.cache.dir = '/tmp'",
    "brings its own machine code": "import triton\ntriton.compile('x.ptx')",
    "calls cuBLAS through Triton": "import triton\ntriton.testing.cublas()",
    "reads pickles": "import numpy as np\nx = np.load('x.npy', allow_pickle=True)",
    "falls back when the kernel fails": "try:\n    kernel[(1,)](x)\nexcept Exception:\n    y = x",
    "imports relatively": "from . import secret",
    "finds a module in another": "import pathlib\npathlib.os.getcwd()",
    "imports a module from another": "from pathlib import os",
    "looks inside a module": "import argparse\nargparse._os.getcwd()",
    "hides sys behind a name": "import sys as s\ns.modules",
    "hands sys to a function": "import sys\ndef f(s): return s.modules\nf(sys)",
    "matches attributes": "match x:\n  case object(__class__=c): pass",
    "gets attributes by operator": "import operator\nf = operator.attrgetter('__globals__')",
    "gets attributes by format": "import string\nstring.Formatter().get_field('0.__class__', (1,), {})",
    "evaluates annotations": "import typing\ntyping.get_type_hints(f)",
    "changes a part of Triton": "import triton\nr = triton.runtime\nr.driver = 1",
    "loads machine code": "import triton\ntriton.runtime.driver.active.utils.load_binary('x', b'', 0, 0)",
    "finds numpy in another module": "import device_arrays\ny = device_arrays.np.exp(x)",
    "reads memory around an array": "import numpy as np\ny = np.lib.stride_tricks.as_strided(x, (9999,))",
    "runs code through numpy's tests": "from numpy import testing\ntesting.runstring('x = 1', {})",
    "imports names unseen": "from numpy import *",
    "resolves names with pkgutil": "import triton\ntriton.language.extra.pkgutil.resolve_name('os:getpid')",
    "imports pkgutil from Triton": "from triton.language.extra import pkgutil",
    "makes functions from byte code": "import dataclasses\nmake = dataclasses.types.CodeType",
    "names its kernel like one of cuBLAS": "import triton\n@triton.jit\ndef ampere_sgemm_128(x): pass",
    "rewrites a kernel": "import triton\n@triton.jit\ndef f(x): pass\nf.src = ''",
    "rewrites a kernel in a function": "def g():\n  @triton.jit\n  def f(x): pass\n  f.src = ''",
    "copies attributes with wraps": "import functools\nfunctools.wraps(*[f, (), names])(g)",
    "keeps wraps": "from functools import wraps\nw = wraps",
    "renames wraps": "from functools import wraps as w",
    "parses into a function": "parser.parse_args(['--x'], namespace=f)",
    "parses into a function by place": "parser.parse_args(['--x'], f)",
    "parses into an unpacked function": "parser.parse_known_args(*[['--x'], f])",
    "keeps an action of argparse": "action = parser.add_argument('--x', dest=name)\naction(parser, f, code)",
    "looks up an action of argparse": "parser._actions[1](parser, f, code)",
    "takes the object out of an error": "try: f.x\nexcept AttributeError as e: x = e.obj",
    "replaces how objects are copied": "import copy\ncopy.dispatch_table.update(x)",
    "finds how objects are copied elsewhere": "import copy\ncopy.copyreg.pickle(A, f)",
    "puts an enumeration into a module": "import enum\nenum.global_enum(x)",
    "renames a field": "import dataclasses\ndataclasses.fields(A)[0].name = text",
    "renames its own field": "from dataclasses import field\nf = field()\ndef g(self): self.name = text\ng(f)",
    "makes a dataclass of text": "import dataclasses\ndataclasses.make_dataclass('A', names)",
    "makes a class of text": "import abc\nabc.ABCMeta('A', (), {name: f})",
    "compiles C with Triton": "import triton\ntriton.runtime.build.compile_module_from_src(code, 'x')",
    "imports Triton's compiler of C": "from triton.runtime import build",
    "imports Triton's compiler of C as a module": "import triton.runtime.build",
    "writes to Triton's cache": "import triton\ntriton.runtime.cache.get_cache_manager('0').put(b'', '../x')",
    "finds Triton's cache under another name": "from triton import runtime as r\nr.cache.get_cache_manager('0')",
    "runs programs through Triton": "import triton\ntriton.testing.set_gpu_clock()",
    "finds Triton's insides in its language": "import triton.language as tl\ntl.math.core.jit",
    "opens a descriptor": "open('x', 'wb', opener=lambda path, flags: 5)",
    "opens a descriptor by place": "open('x', 'wb', 0, None, None, None, True, f)",
    "opens a descriptor with FileIO": "import io\nio.FileIO('x', 'wb', True, f)",
    "opens a descriptor with options": "open('x', **{name: f})",
    "poses as a file": "class A:\n  def fileno(self): return 5",
    "poses as a file with a lambda": "class A:\n  fileno = lambda self: 5",
    "poses as a file by an attribute": "a.fileno = lambda: 5",
    "poses as a file with argparse": "import argparse\nargparse.Namespace(fileno=lambda: 5)",
    "poses as a number": "class A(str):\n  def __index__(self): return 5",
    "imports into a class": "class A:\n  if 1: import triton\nA.triton.runtime.build.x()",
    "imports internal names": "from argparse import _sys",
    "runs code through numpy's tests elsewhere": "import numpy as np\nnp.testing.rundocs()",
    "catches errors with numpy's tests": "import numpy as np\nnp.testing.assert_raises(Exception, f)",
    "gives another module numpy's name": "import triton.language as np",
    "uses a name that classes change": "import numpy as _A__n\nclass A:\n  def f(self): __n.x = 1",
    "hands on a library by another": "import dataclasses\npatch(dataclasses.functools)",
    "falls back for a group of errors": "try:\n    kernel[(1,)](x)\nexcept* OSError:\n    y = x",
    "falls back with a constant grid": "@triton.jit\ndef k(): pass\ntry:\n  k['x'](x)\nexcept OSError:\n  y = x",
    "matches a registered class by place": "from dataclasses import dataclass\nimport abc\n@dataclass\n"
    "class A(abc.ABC):\n  x: int\nmatch f:\n  case A(y): pass",
    "matches a class that it exchanged": "from dataclasses import dataclass\ndataclass = f\n@dataclass\n"
    "class A:\n  x: int\nmatch f:\n  case A(y): pass",
    "matches a class with a built-in name": "str = A\nmatch f:\n  case str(y): pass",
}

CHANGES = {
    "with a variable of a comprehension": "def f():\n  [c for c in ()]\n  c.x = 1",
    "with a parameter of a lambda": "def f(g=lambda c: 0):\n  c.x = 1",
    "with a variable of an inner function": "def f():\n  def g(): c = 1\n  c.x = 1",
    "with a variable of a class": "def f():\n  class A: c = 1\n  c.x = 1",
    "in a class, where a function has such a variable": "def f():\n  c = 1\n  class A:\n    c = c\n    c.x = 1",
    "of all functions": "def f():\n  global c\n  c = 1\n  c.x = 1",
    "of another function": "def f():\n  c = 1\n  def g():\n    import math as c\n    c.x = 1",
    "by a default": "def f(e, d=(e := c)): pass\ne.x = 1",
    "in an inner function": "def f():\n  d = c\n  def g(): d.x = 1",
    "by an assignment in an expression": "def f():\n  print(d := c)\n  d.x = 1",
    "by an assignment with a type": "d: object = c\nd.x = 1",
}
"""Changes of a class of Triton, called c, although another variable is called c too."""


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_program_that_reaches_beyond_itself_is_refused_at_its_line(attack: str) -> None:
    broken = broken_rules(b"# a comment\n" + attack.encode(), ())
    assert broken and all(line >= 2 for line, _, _ in broken)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_a_module_is_seen_in_every_scope(change: str) -> None:
    assert broken_rules(f"import triton\nc = triton.Config\n{change}".encode(), ())


HONEST = {
    "a plain number": "import math\nbest = math.inf\nbest = np.zeros(3)\nbest[0] = 1",
    "a variable of another function": "def f(): t = np.linalg.norm\ndef g(t): t[0] = t.x = 1",
    "a parameter with a module's name": "import time\ndef f(what, time): print(what, time * 1e3)",
    "a variable with a module's name": "import copy\ndef f(a):\n  copy = a.copy()\n  copy[copy < 1] = 0\n  return copy",
    "the program's arguments": "import sys\nargs = sys.argv\nargs[0] = 'x'",
    "a type that becomes a table": "dtype = np.float32\ndtype = {}\ndtype['x'] = 1",
    "numpy's assertions": "np.testing.assert_allclose(x, y, rtol=1e-4)",
    "an assertion of numpy": "from numpy.testing import assert_array_equal",
    "numpy's random numbers": "from numpy.random import default_rng\nfrom numpy.linalg import norm",
    "the driver of the tutorials": "from triton.runtime import driver\n"
    "n = driver.active.utils.get_device_properties(driver.active.get_current_device())['multiprocessor_count']\n"
    "target = driver.active.get_current_target()",
    "parts of Triton": "import triton\ntriton.testing.do_bench(f)\nn = triton.cdiv(3, 2)\n@triton.heuristics({})\n"
    "@triton.autotune(configs=[triton.Config({})], key=[])\n@triton.jit\ndef f(): pass",
    "a fast function": "from triton.language.extra.cuda.libdevice import exp",
    "versions": "import sys\nprint(np.__version__, sys.version, sys.platform)\n__version__ = '1'",
    "a decorator": "import functools\ndef timed(f):\n  @functools.wraps(f)\n  def g(*a): return f(*a)\n  return g",
    "arguments": "import argparse\np = argparse.ArgumentParser()\np.add_argument('x')\na = p.parse_args()",
    "an own record by place": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Matrix:\n"
    "  rows: int\n  columns: int\nmatch m:\n  case Matrix(1, columns): pass",
    "names and fields of two classes": "from dataclasses import dataclass\n@dataclass\nclass A:\n  name: str\n"
    "class B:\n  def __init__(self, name): self.name = name",
    "a step by name in a try block": "STEPS = {'read': f}\ntry: x = STEPS['read'](name)\nexcept OSError: pass",
    "an own file": "with open('log', 'w', encoding='utf-8', newline='') as file: file.fileno()",
}


@pytest.mark.parametrize("lines", HONEST.values(), ids=HONEST.keys())
def test_usual_python_is_allowed(lines: str) -> None:
    assert broken_rules((DATA + lines).encode(), ()) == []


def test_a_forbidden_import_says_once_what_may_be_imported() -> None:
    (_, _, first), (_, _, second) = broken_rules(b"import os\nimport logging\n", ("torch",))
    assert all(f" {name}," in first for name in ("math", "numpy", "torch", "triton")) and "numpy" not in second


def test_a_name_that_only_libraries_may_use_is_to_be_changed() -> None:
    [(_, what, why)] = broken_rules(b"class Timer:\n    def f(self): return self.clock()\n", ())
    assert what == "uses clock" and "give yours another name" in why


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("reference/*/*.py"), *ROOT.glob("reference/*/wrong/*.py"), *ROOT.glob("student_template/*/*.py")],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_the_courses_own_programs_keep_the_rules(path: Path) -> None:
    assert broken_rules(path.read_bytes(), ()) == []


@pytest.mark.parametrize(
    "line",
    [
        "worst = np.max(np.abs(to_numpy(y).sum(axis=1) - 1.0))",
        "slopes = from_numpy(2.0 ** (-8 * np.arange(1, 9) / 8))",
        "right = np.exp(x) / np.exp(x).sum(1)",
        "class Grid:\n    def __init__(self, n): self.n = self.dtype = n\n"
        "    def __call__(self, meta): return (self.n // meta['BLOCK'],)\nnp.asarray(x)\ngrid = Grid(3)",
        "from triton.language import math\nkernel_part = math.exp",
        "MODES = {'wide': lambda: 8}\ntry:\n    warps = MODES['wide']()\nexcept KeyError:\n    warps = 4",
    ],
)
def test_a_program_may_compute_tables_and_compare_its_results(line: str) -> None:
    assert broken_rules((DATA + line).encode(), ()) == []


@pytest.mark.parametrize(
    "lines",
    [
        "def patch(m):\n    m.jit.JITFunction.run = print\npatch(triton.runtime)",
        "def patch(k):\n    k.run = print\npatch(kernel)",
        f"triton.x[0x{'f' * 5000}] = 1",
    ],
    ids=["a module as an argument", "a kernel as an argument", "a number too long to print"],
)
def test_what_changes_triton_or_cannot_be_examined_is_refused_before_its_build(lines: str, tmp_path: Path) -> None:
    submission = read(tmp_path, {"softmax.py": f"import triton\n{lines}\n"}, "softmax.py")
    found = list(_python_violations(submission, load_assignment("softmax")))
    assert refusal(found, built=False)


def test_an_assignment_can_forbid_inline_assembly() -> None:
    program = b"import triton.language as tl\nx = tl.inline_asm_elementwise\n"
    assert broken_rules(program, ()) == [] and broken_rules(program, (), inline_assembly=False)


def test_an_assignment_can_allow_a_module() -> None:
    assert broken_rules(b"import torch\nx = torch.empty(3)\n", ("torch",)) == []


def test_text_that_is_not_python_is_reported_with_file_and_line() -> None:
    assert syntax_problem([("softmax.py", b"x = 1\ndef f(:\n")]).startswith("softmax.py:2: error:")
    assert syntax_problem([("softmax.py", b"x = 1\n")]) == ""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x = 1\nreturn x\n", "softmax.py:2: error: 'return' outside function"),
        ("x = 1\n".encode("utf-16"), "save the file as UTF-8"),
    ],
)
def test_errors_that_only_pythons_compiler_finds_are_reported(content: bytes, says: str) -> None:
    assert says in syntax_problem([("softmax.py", content)])


def test_only_the_beginning_of_a_long_wrong_line_is_quoted() -> None:
    assert len(syntax_problem([("softmax.py", b"x = " + b"9" * 10_000)])) < 1000


def test_a_program_that_the_rules_refuse_is_not_run_by_its_build(tmp_path: Path) -> None:
    submission = read(tmp_path, {"softmax.py": "import os\n"}, "softmax.py")
    engine: Any = SimpleNamespace(identity=lambda: "an engine that compiles nothing")
    built = build_to_grade(submission, load_assignment("softmax"), engine, ())
    assert built.program is None and built.reason.startswith("softmax.py:1 imports os")


# ---- what is said of it -----------------------------------------------------------------------------------------


def test_a_machine_that_cannot_start_python_programs_is_not_the_students_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without this, each test of every Python submission is "no output" if packages come from PYTHONPATH."""
    monkeypatch.setattr(python_program, "triton_version", lambda: "3.9.0")
    (tmp_path / "source").mkdir()
    (tmp_path / "source/softmax.py").write_text("import triton\nraise ValueError('mine')\n")
    package = tmp_path / python_program.PACKAGE

    def packed(start: str) -> Compiled:
        readable = python_program.on_gpu(package, ()).readable
        launch = Launch(command=(sys.executable, "-Ic", start, str(package)), readable=readable)
        return python_program.pack("softmax.py", tmp_path / "source", package, launch, (), limit_s=20)

    with pytest.raises(MachineFault, match=r"cannot be started: .*No module named 'no_triton'"):
        packed("import no_triton")
    fails_itself = (
        "import sys, zipfile; 'softmax.py' in str(zipfile.ZipFile(sys.argv[1]).namelist()) and sys.exit('mine')"
    )
    assert (packed(fails_itself).ok, packed(fails_itself).log.strip()) == (True, "mine")


def test_only_so_much_of_what_a_program_leaves_in_tritons_cache_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 files of 4 MiB that take no room on a disk were read into the grader's memory."""
    monkeypatch.setattr(python_program, "triton_version", lambda: "3.9.0")
    monkeypatch.setattr(python_program, "_KEPT_BYTES", 1 << 20)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/softmax.py").write_text("import triton\n")
    package = tmp_path / python_program.PACKAGE
    start = (
        "import os, pathlib\nfor n in range(10):\n"
        "    (pathlib.Path(os.environ['GRADER_PYTHON_CACHE']) / f'{n}.bin').write_bytes(bytes(1 << 18))\n"
        "(pathlib.Path(os.environ['GRADER_PYTHON_CACHE']) / '0\\udcff.txt').write_text('no name for a zip file')"
    )
    readable = python_program.on_gpu(package, ()).readable
    launch = Launch(command=(sys.executable, "-Ic", start, str(package)), readable=readable)
    python_program.pack("softmax.py", tmp_path / "source", package, launch, (), limit_s=20)
    with zipfile.ZipFile(package) as packed:
        assert sum(name.startswith(f"{layout.CACHE}/") for name in packed.namelist()) == 4


def test_translating_what_the_build_left_ends_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_program, "_TRANSLATING_S", -1.0)
    package = tmp_path / python_program.PACKAGE
    with zipfile.ZipFile(package, "w") as packed:
        packed.writestr(f"{layout.CACHE}/a/kernel.ptx", PTX.read_bytes())
    on = python_program.Emulated(find_toolkit(), "sm_80", frozenset())
    assert python_program.add_emulated_kernels(package, on, sandbox.runner(10)).ok
    with zipfile.ZipFile(package) as packed:
        assert packed.namelist() == [f"{layout.CACHE}/a/kernel.ptx"]


def test_inline_assembly_without_an_end_takes_no_time() -> None:
    began = time.monotonic()
    kept = list(
        _without_lines_in_assembly("// begin inline asm\n" * 200_000 + " .loc 1 2 3\n// end inline asm\n .loc 1 2 3\n")
    )
    assert len(kept) == 200_002 and time.monotonic() - began < 5


def test_a_python_program_starts_also_if_the_grader_is_not_installed(tmp_path: Path) -> None:
    word, *rest = python_program.on_gpu(tmp_path / python_program.PACKAGE, ()).command
    said = subprocess.run([word, "-S", *rest], capture_output=True, text=True, check=False).stderr
    assert "No module named 'numpy'" in said, "the grader itself is found, also without site-packages"


RAN = KernelEvent("softmax", (1, 1, 1), (1, 1, 1), 32, 0, 0, 0, start_ns=0, end_ns=1, stream=0)


@pytest.mark.parametrize(("kernels", "advised"), [((), True), ((RAN,), False)])
def test_a_run_that_ended_before_any_kernel_may_have_been_compiling(
    kernels: tuple[KernelEvent, ...], advised: bool, tmp_path: Path
) -> None:
    stopped = Outcome(None, "SIGKILL", "time", 5.0, 5.0, 1, "", "")
    run, check = Run(stopped, tmp_path, Trace(kernels=kernels, program_started=True), ""), Check("missing", "", 4)
    submission = read(tmp_path, {"softmax.py": PROGRAM}, "softmax.py")
    said = judge(run, check, limit_s=5, limit_name="the limit", submission=submission)
    assert said.verdict is Verdict.TIME_LIMIT
    assert ("Triton may still have been compiling" in said.cause) is advised


BROKEN = "Traceback (most recent call last):\nOSError: libtriton.so: file too short\n"


@pytest.mark.parametrize(
    ("outcome", "trace", "said"),
    [
        (Outcome(1, None, "", 0.1, 0.1, 1, "", BROKEN), None, "OSError: libtriton.so: file too short"),
        (Outcome(1, None, "", 0.1, 0.1, 1, "", ""), Trace(), "exit code 1"),
        (Outcome(None, "SIGKILL", "time", 5.0, 5.0, 1, "", ""), None, "less busy"),
        (Outcome(None, "SIGKILL", "memory", 5.0, 5.0, 1, "", ""), None, "memory limit"),
    ],
)
def test_a_program_that_was_not_started_is_not_to_blame(
    outcome: Outcome, trace: Trace | None, said: str, tmp_path: Path
) -> None:
    """A grader whose Triton was broken failed every Python submission with the grader's own traceback."""
    submission = read(tmp_path, {"softmax.py": PROGRAM}, "softmax.py")

    def judged(trace: Trace | None) -> Judgement:
        run, check = Run(outcome, tmp_path, trace, ""), Check("missing", "", 4)
        return judge(run, check, limit_s=5, limit_name="the limit", submission=submission)

    judgement = judged(trace)
    assert (judgement.verdict, judgement.fault) == (Verdict.GRADER_ERROR, Fault.MACHINE)
    assert said in judgement.reason
    assert judged(Trace(program_started=True)).fault is Fault.STUDENT


def test_check_does_not_build_with_checks_what_the_rules_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That build ran the refused program, for up to a minute."""
    built: list[object] = []
    monkeypatch.setattr(closer_look, "build", lambda *given: built.append(given))
    (tmp_path / "softmax.py").write_text("import os\n")
    [record] = submissions.grade_paths(
        [tmp_path / "softmax.py"], assignment="softmax", tests="s01", engine="emulator", json=None, quick=True
    )
    assert "imports os" in record.tests[0].reason and not built


def test_a_finding_at_a_copy_names_the_array_and_no_call_of_cuda() -> None:
    message = (
        "cudaMemcpy: 4000 of the 4000 bytes copied to the host were never written, beginning at offset 0 of the "
        "4000 bytes of cudaMalloc"
    )
    for line, array in (("y = empty((1000,))", "`y`"), ("work(empty((1000,)))", "the array made at softmax.py:7")):
        found = Diagnostic("warning", "init", f"{message} at softmax.py:7", file="softmax.py", line=9)
        said = sentence(found, lambda file, number, line=line: line)  # type: ignore[misc]
        assert said.startswith("softmax.py:9: 4000 of the 4000 bytes") and array in said and "cuda" not in said


# ---- kernels ----------------------------------------------------------------------------------------------------

PTX = Path(__file__).parent / "emulator/triton_softmax.ptx"
"""What Triton 3.9.0 made of the softmax of rows, for sm_80."""
ARITHMETIC = re.compile(r"\b(?:add|sub|mul|fma|div|max|min|ex2)\.\S*f32")


def test_a_translated_kernel_is_found_again_when_its_source_lies_elsewhere() -> None:
    ptx = PTX.read_bytes()
    assert kernel_name(ptx) == kernel_name(ptx.replace(b"/home/student/", b"/tmp/python-x/source/"))
    assert kernel_name(ptx) != kernel_name(ptx.replace(b"ex2", b"lg2"))


def test_code_is_the_same_in_another_run_only_if_it_is_the_same() -> None:
    ptx = PTX.read_bytes()
    code = code_hash(ptx, b"/home/student")
    assert code_hash(ptx.replace(b"/home/student", b"/tmp/python-x"), b"/tmp/python-x") == code
    assert code_hash(ptx.replace(b".b8 1 ", b".b8 2 "), b"/home/student") == code  # for debuggers
    for change in (
        (b"ex2", b"lg2"),
        (b"\tret;", b"/*\n.section .debug_x\n*/\tret;"),
        (b"\tret;", b'\t/* .file 1 " */ ret;'),
        (b"\t.file", b"\t.func other() { ret; }\n\t.file"),
    ):
        assert code_hash(ptx.replace(*change), b"/home/student") != code


def test_a_kernel_that_only_copies_is_told_from_one_that_computes() -> None:
    text = PTX.read_text()
    copies = "".join(line for line in text.splitlines(True) if not ARITHMETIC.search(line))
    for ptx, computes in ((text, True), (copies, False)):
        body = parse(ptx).functions["softmax"].body
        assert any(may_compute_floats(item) for item in body if isinstance(item, Instr)) == computes


def test_tritons_ptx_is_translated_and_its_lines_are_those_of_the_python_file() -> None:
    module = parse(PTX.read_text())
    translation, findings = translate_module(module, prefix="m0", lanes=8, watch=True)
    assert not findings and translation.parts
    places = {item.loc for item in module.functions["softmax"].body if isinstance(item, Instr)}
    files = {module.files[place.file] for place in places if place.line}
    assert files == {"/home/student/softmax.py"}, "none is in Triton's own library"
