"""`grader handout`: the folder that a course gives to its students.

    README.md            how to begin, then the assignment's handout
    NAME.cu, Makefile …  the template, as in student_template/NAME/
    assignment/          the rules
    testcases/           the list of testcases, and the files of the public ones
    grader/              the grader as a wheel, and setup.sh to install it into .venv

It leaves out the model solutions, the baseline, the secret and everything drawn from it, and also the kernels that
compute expected outputs on a GPU, since these are solutions, too. A template must hold neither copies of files in
reference/ nor links, which could lead to any of these files.
"""

from __future__ import annotations

import base64
import hashlib
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from grader.base.errors import MachineFault, UsageError
from grader.base.identity import DISTRIBUTION, PACKAGES, identity
from grader.base.packing import files_below, packed
from grader.base.paths import course_root, shown
from grader.base.progress import shown_progress
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.operators import course_operator
from grader.programs import python_main
from grader.programs.oracle import ensure

_BEGIN = """\
# Begin here

On Debian or Ubuntu (on Windows: in WSL), in this folder:

```sh
sh grader/setup.sh               # once: installs the grader into .venv, with nvcc where there is none; no GPU is needed
.venv/bin/grader check {main}
```

`. .venv/bin/activate` puts the command `grader` on PATH.

"""
_BEGIN_IN_PYTHON = """\
For `{main}`, whose kernels are written in Triton, the first command is `sh grader/setup.sh triton`, which also installs
Triton. Then

```sh
.venv/bin/grader check {main}
```

"""


def build_handout(out: Path, rules: Assignment) -> list[str]:
    """Write the folder `out`, whole or not at all, and return the names of its files. Raises UsageError if `out`
    exists and is not empty, or if the course's files cannot be handed out."""
    try:
        out = out.resolve()
        if out.exists() and not (out.is_dir() and not any(out.iterdir())):
            raise UsageError(f"{shown(out)} exists already: name a new folder for the handout.")
        content = _content(rules, out)
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as scratch:
            made = Path(scratch) / "handout"
            for name, data in content.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_bytes(data)
            made.replace(out)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{shown(out.parent)} is not a folder: name another place for the handout.") from error
    except OSError as error:
        raise MachineFault(f"The handout could not be written to {shown(out)}: {error.strerror}.") from error
    return sorted(content)


def _content(rules: Assignment, out: Path) -> dict[str, bytes]:
    """The files of the handout that goes to `out`, by name."""
    root, main, mains = course_root(), rules.submission.main, rules.submission.mains
    template = root / "student_template" / rules.name
    for source in (template, *PACKAGES):
        if out.is_relative_to(source.resolve()):
            raise UsageError(f"{shown(out)} is inside {shown(source)}, which goes into handouts: name another folder.")
    for name in mains:
        if not (template / name).is_file():
            raise UsageError(f"{shown(template / name)} is missing: students need a template to start from.")
    content = {path.relative_to(template).as_posix(): data for path, data in _template(template, root / "reference")}
    readme = _read(root / "assignment" / rules.name / "README.md").decode(errors="replace")
    readme = readme.replace(f"`student_template/{rules.name}/`", " or ".join(f"`{name}`" for name in mains))
    begin = [_BEGIN.format(main=main)]
    begin += [_BEGIN_IN_PYTHON.format(main=name) for name in mains if name.endswith(python_main.SUFFIX)]
    own = {"README.md": "".join((*begin, readme)).encode()}
    operator = course_operator(rules.operator)
    rule_files = (root / "assignment" / rules.name / "assignment.yaml", rules.testcases_file)
    for path in (*rule_files, *([operator] if operator else []), *_samples(rules)):
        own[path.relative_to(root).as_posix()] = _read(path)
    own |= {"grader/setup.sh": _read(root / "tools/setup.sh")} | dict([_wheel()])
    if both := sorted(content.keys() & own.keys()):
        raise UsageError(f"{shown(template / both[0])}: the handout has its own file of this name; rename yours.")
    return content | own


def _template(template: Path, reference: Path) -> Iterator[tuple[Path, bytes]]:
    """The template's files. Raises UsageError for copies of solutions and for links, which could lead to any file."""
    solutions = {data: path for path in files_below(reference) if (data := path.read_bytes())}
    for path in files_below(template):
        if path.is_symlink():
            raise UsageError(f"{shown(path)} is a link, and students would get its target: put a file there.")
        data = _read(path)
        if data in solutions:
            raise UsageError(f"{shown(path)} is the same file as {shown(solutions[data])}: students must not get it.")
        yield path, data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read, and the handout needs it: {error.strerror}.") from error


def _samples(rules: Assignment) -> Iterator[Path]:
    suite = suite_of(rules)
    files = TestcaseFiles.beside(suite)
    public = [case for case in suite.cases.values() if not case.hidden]
    with shown_progress() as progress:
        ensure(public, suite, files, progress)
    for case in public:
        yield from (files.input(case), files.expected(case), files.sidecar(case))


def _wheel() -> tuple[str, bytes]:
    """The name and content of the grader as a wheel (PEP 427)."""
    installed = distribution(DISTRIBUTION)
    name = f"{DISTRIBUTION.replace('-', '_')}-{identity().release}"
    content = {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for package in PACKAGES
        for path in files_below(package)
        if not (path.suffix == ".cu" and "operators" in path.relative_to(package).parts)
    }
    # An installed package has METADATA. A checkout, which `python -m grader` finds first, has PKG-INFO.
    described = installed.read_text("METADATA") or installed.read_text("PKG-INFO") or ""
    described = re.sub(r"^Version: .*$", f"Version: {identity().release}", described, count=1, flags=re.MULTILINE)
    about = {"METADATA": described, "entry_points.txt": installed.read_text("entry_points.txt") or ""}
    about["WHEEL"] = "Wheel-Version: 1.0\nGenerator: grader handout\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content |= {f"{name}.dist-info/{file}": text.encode() for file, text in about.items()}
    content[f"{name}.dist-info/RECORD"] = (
        "".join(f"{file},sha256={_digest(data)},{len(data)}\n" for file, data in content.items()).encode()
        + f"{name}.dist-info/RECORD,,\n".encode()
    )
    return f"grader/{name}-py3-none-any.whl", packed(content)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
