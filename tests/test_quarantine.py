"""The one door to files that an untrusted stage could have touched: what it takes, and that there is no other."""

import ast
import errno
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from grader.sandbox import quarantine
from grader.sandbox.quarantine import Refused, claim, read_bytes
from tests.test_packages import is_confined, trees

READERS = {"open", "read_text", "read_bytes", "copyfile", "copy", "copy2", "copytree", "fromfile", "memmap", "loadtxt"}
OWN_FILES = {
    "timing/baseline": "the times of the course's C program",
    "timing/sequential": "the course's C program and its times",
    "classes/batch": "pipes, and records of its own workers",
    "programs/build": "builds that it made and kept itself",
    "course/catalogue": "testcases, which no run may write",
    "checking/check": "expected outputs",
    "commands/resemblance": "the template handed out",
    "commands/cli": "/dev/null, for streams that are closed",
    "classes/executors": "pipes, orders and results of its own jobs",
    "checking/corners": "expected outputs",
    "base/csv_table": "tables of the staff",
    "checking/diagnose": "inputs and expected outputs",
    "checking/samples": "inputs and expected outputs",
    "checking/gradient": "inputs, of which it makes others",
    "commands/durations": "how long its own gradings took",
    "grading/repairing": "inputs, of which it lends a copy",
    "commands/judge_client": "files that their owner submits from their own machine",
    "cudaemu/build": "the emulator's own files",
    "cudaemu/host": "programs of the person who runs it; the grader has a host of its own",
    "cudaemu/isa": "the emulator's own files",
    "cudaemu/kernel_library": "PTX that it wrote, which compilers may only read",
    "checking/watch/look": "inputs and expected outputs",
    "plans/failures": "a submission's source, in the confined recording",
    "plans/handles": "nothing: its `copy` is one in device memory",
    "plans/recording": "its request and results, in the confined recording",
    "plans/replay_program": "the replayer's source",
    "programs/engine/plan_program": "the sources that the grader wrote out before any stage ran, and its own samples",
    "cudaemu/native": "the emulator's own files, and objects that it claimed",
    "cudaemu/nvcc": "objects and PTX that it claimed",
    "programs/engine/cuda": "the tracer's source",
    "timing/fresh_inputs": "inputs that it draws itself, which runs may only read",
    "gpu/lock": "its lock",
    "judge": "its templates; uploads come over HTTP, and its own `open` opens no file",
    "programs/gpu_oracle": "the grader's own kernels and files",
    "gradescope": "the course's files",
    "base/identity": "the files of the grader",
    "base/machine": "/proc",
    "course/assignment": "the course's files",
    "checking/property_check": "inputs, expected outputs, and an output that the door opened",
    "estimates/estimate": "its calibration, and what its own tools wrote for the room",
    "estimates/machine_code": "a built program, which the cache keeps out of reach",
    "estimates/gpus": "its own facts",
    "commands/verify_assignment": "the course's files",
    "commands/new_assignment": "the course's files",
    "checking/probes/reading": "inputs that it draws itself",
    "grading/probing": "a testcase's input, which runs may only read",
    "programs/function_contract": "the grader's own sources",
    "profiling/occupancy": "the toolkit",
    "operators": "inputs and expected outputs",
    "records/record": "records named by a person, which pydantic reads",
    "programs/source_rules": "its own results, and itself",
    "programs/engine/emulator": "sources that the grader wrote, before a compiler starts, which may only read them",
    "programs/run": "a testcase's input, which is copied",
    "sandbox": "/proc, control groups, descriptors",
    "sanitizers/tool": "its canary",
    "course/seeds": "the secret",
    "site": "templates, and pages that it makes",
    "store": "the database",
    "base/yaml_text": "the course's YAML",
    "commands/handout": "the course's files and the grader's own",
}
"""Which modules, or packages, open files themselves, and whose: none of them was within reach of an untrusted stage."""


DECODERS = {
    "base/csv_table": "tables of the staff",
    "base/packing": "archives that the grader writes",
    "base/remote": "calls between the grader's own processes",
    "base/yaml_text": "the course's YAML",
    **dict.fromkeys(("classes/executors/job_files", "classes/executors/slurm"), "results of its own jobs"),
    "commands/judge_client": "answers of the judge that its user named, and archives that it writes",
    "course/catalogue/testcase_files": "facts about testcases that it wrote",
    **dict.fromkeys(("cudaemu/native", "cudaemu/nvcc", "timing/baseline"), "its own cache"),
    **dict.fromkeys(("estimates/estimate", "estimates/gpus"), "its calibration and facts"),
    "gradescope/harness": "what Gradescope says about a submission",
    "judge/ledger": "tests of running submissions, which it stored",
    "judge/predictions": "predictions of its workers, which it stored",
    "judge/stage_task": "uploads that it compressed after it had measured them",
    "plans/recording": "its request, in the confined recording",
    "programs/build": "builds that it made and kept itself",
    "programs/engine/local_run": "the engine, from the grader that started the process",
    "programs/source_rules": "its own results",
    "programs/trace/reader": "STRANGERS: a trace, line by line within limits",
    "records/record": "STRANGERS: what the room has rewritten, and a row of a store, within limits",
    "sandbox/archive": "STRANGERS: in the room",
    "sandbox/fork_server": "calls of the grader's own process",
    "sandbox/room": "STRANGERS: answers of the room, within limits, into values of declared types",
    "store/database": "STRANGERS: a store, by its only connection",
    "store/foreign": "an empty database in memory, for its schema",
    "store/rows": "STRANGERS: files of a store, within limits",
}
"""Which modules turn bytes into values outside a confined function, and whose bytes they are. STRANGERS: a student, or
whoever made the record or the store that a command of the staff opens, may have written them."""
DECODING = {
    "csv.reader", "csv.DictReader", "json.load", "json.loads", "marshal.loads", "pickle.load", "pickle.loads",
    "sqlite3.connect", "tarfile.open", "tomllib.loads", "yaml.load", "yaml.parse", "yaml.safe_load", "zipfile.ZipFile",
    "zlib.decompress", "zlib.decompressobj", "ElementTree.parse", "ElementTree.fromstring", "gzip.open", "lzma.open",
}  # fmt: skip


def test_bytes_become_values_in_the_room_or_where_it_is_known_whose_they_are() -> None:
    found = set()
    for module, tree in trees().items():
        confined = {node for function in ast.walk(tree) if is_confined(function) for node in ast.walk(function)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node not in confined:
                word = f"{getattr(node.func.value, 'id', '')}.{node.func.attr}"
                if word in DECODING or node.func.attr in ("model_validate_json", "validate_json"):
                    found.add(_name(module))
    assert found == set(DECODERS)


def _name(module: str) -> str:
    return module.removeprefix("grader.").replace(".", "/")


@cache
def modules_that_open() -> frozenset[str]:
    return frozenset(_modules_that_open())


def _modules_that_open() -> Iterator[str]:
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                if word in READERS and not _is_quarantine(called):
                    yield _name(module)
                    break


def test_what_may_open_files_exists() -> None:
    assert set(OWN_FILES) <= set(map(_name, trees()))


def _is_below(name: str) -> bool:
    """Whether a package that the module is in may open files."""
    return any(name.startswith(f"{package}/") for package in OWN_FILES)


def _is_quarantine(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "quarantine"


def test_no_other_module_opens_what_an_untrusted_stage_could_have_touched() -> None:
    opening = modules_that_open() - {"sandbox/quarantine"}
    assert [name for name in opening if name not in OWN_FILES and not _is_below(name)] == []


@pytest.mark.parametrize(
    "name",
    [
        "profiling/ncu",
        "programs/makefile",
        "grading/judge",
        "timing/evidence",
        "programs/trace/reader",
        "classes/batch/class_folder",
        "classes/similarity",
    ],
)
def test_what_reads_only_untrusted_text_opens_no_file(name: str) -> None:
    assert name not in modules_that_open()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("the secret")
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "inner" / "file").write_text("content")
    return made


def test_a_file_of_its_own_is_read(folder: Path) -> None:
    assert read_bytes(folder, "inner/file", 7) == b"content"


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (lambda f: (f / "x").symlink_to(f.parent / "secret"), "x", "is a link"),
        (lambda f: (f / "x").symlink_to("inner"), "x/file", "is a link"),
        (lambda f: (f / "x").hardlink_to(f.parent / "secret"), "x", "has a second name"),
        (lambda f: os.mkfifo(f / "x"), "x", "not a regular file"),
        (lambda f: (f / "x").mkdir(), "x", "not a regular file"),
        (lambda f: (f / "x").symlink_to("/dev/zero"), "x", "is a link"),
        (lambda f: (f / "x").write_text("more than"), "x", "is 9 bytes, expected at most 7"),
        (lambda f: None, "../secret", "cannot be read"),
        (lambda f: None, "inner/../../secret", "cannot be read"),
        (lambda f: None, "/etc/passwd", "cannot be read"),
        (lambda f: None, "a\0b", "has a name that no file can have"),
        (lambda f: None, "", "cannot be read"),
        (lambda f: None, "x" * 5000, "cannot be read"),
    ],
)
def test_anything_else_is_refused_with_the_reason(folder: Path, make, name: str, why: str) -> None:
    make(folder)
    with pytest.raises(Refused, match=why):
        read_bytes(folder, name, 7)


@pytest.mark.parametrize("program", [False, True])
def test_only_a_file_of_its_own_is_claimed(folder: Path, program: bool) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "program").touch(0o755)
    target = folder.parent / "target"
    assert not claim(folder, "link", target, program=program) and not target.exists()
    assert not claim(folder, "missing", target, program=program)
    assert claim(folder, "program", target, program=program) and target.is_file()


def test_a_program_is_claimed_from_another_file_system_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*names: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    (folder / "program").touch(0o755)
    monkeypatch.setattr(Path, "rename", fails)
    assert claim(folder, "program", folder / "claimed", program=True)
    assert os.access(folder / "claimed", os.X_OK)


def test_an_output_whose_permissions_were_taken_away_is_opened(folder: Path) -> None:
    (folder / "output").write_text("x")
    (folder / "output").chmod(0)
    descriptor = quarantine.open_output(folder / "output")
    assert os.read(descriptor, 9) == b"x"
    os.close(descriptor)
