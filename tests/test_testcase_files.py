"""Making, keeping and re-reading the files of testcases."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import MachineFault
from grader.base.workers import run_tasks
from grader.course.catalogue import TestcaseFiles, changed_files, ensure, generate, making, piece, state, verify
from grader.course.catalogue.piece import pieces
from grader.course.seeds import hidden_seed, public_seed
from grader.course.testcase import Case, load_suite
from grader.operators import load_operator

ATTENTION = load_operator("attention_forward")
HW4 = Path(__file__).parent.parent / "testcases" / "hw4.yaml"
SEED = public_seed("tests")


@pytest.fixture
def case() -> Case:
    return replace(load_suite(HW4).cases["s01"], shape=(3, 128, 32))


@pytest.fixture
def files(tmp_path) -> TestcaseFiles:
    return TestcaseFiles(tmp_path / "made")


def listing(files):
    return sorted(p.name for p in files.folder.iterdir())


def expected_by_hand(case, files):
    outputs = []
    with files.input(case).open("rb") as source:
        for unit in range(case.shape[0]):
            q, k, v = (t.astype(np.float64) for t in ATTENTION.read_unit(source, case.shape, unit))
            weights = np.exp(q @ k.T / np.sqrt(case.shape[2]))
            outputs.append(weights / weights.sum(axis=1, keepdims=True) @ v)
    return np.concatenate(outputs)


def test_a_generated_case_has_a_legal_input_and_the_right_output(case, files):
    generate(case, files, SEED)
    assert listing(files) == ["s01.in", "s01.json", "s01.out"]
    assert ATTENTION.read_header(files.input(case)) == (3, 128, 32)
    got = np.fromfile(files.expected(case), dtype="<f4").reshape(3 * 128, 32)
    assert np.abs(got - expected_by_hand(case, files)).max() < 1e-6
    body = np.fromfile(files.input(case), dtype="<f4", offset=12)
    assert body.min() < -2.99 and 2.99 < body.max() <= 3
    assert verify(case, files, SEED, full=True).ok


def test_the_same_seed_makes_the_same_files_and_another_seed_no_common_batch(case, files, tmp_path):
    generate(case, files, SEED)
    again, other = TestcaseFiles(tmp_path / "again"), TestcaseFiles(tmp_path / "other")
    generate(case, again, SEED)
    generate(case, other, hidden_seed("tests"))
    assert files.input(case).read_bytes() == again.input(case).read_bytes()
    mine, theirs = (np.fromfile(f.input(case), dtype="<f4", offset=12) for f in (files, other))
    assert (mine == theirs).mean() < 0.001


def test_worker_processes_write_what_one_process_writes(case, files, tmp_path):
    generate(case, files, SEED, processes=0)
    spread = TestcaseFiles(tmp_path / "spread")
    generate(case, spread, SEED, processes=2)
    assert files.input(case).read_bytes() == spread.input(case).read_bytes()
    mine, theirs = (np.fromfile(f.expected(case), dtype="<f4") for f in (files, spread))
    assert np.abs(mine - theirs).max() < 1e-6


def test_a_large_batch_split_by_rows_gives_the_same_files(case, files, tmp_path, monkeypatch):
    case = replace(case, shape=(2, 1024, 32))
    generate(case, files, SEED)
    monkeypatch.setattr(piece, "PIECE_FLOPS", 1e7)
    monkeypatch.setattr(piece, "PIECE_ROWS", 100)
    assert len(list(pieces(ATTENTION, case.shape))) == 2 * 11
    split = TestcaseFiles(tmp_path / "split")
    generate(case, split, SEED)
    assert files.input(case).read_bytes() == split.input(case).read_bytes()
    assert verify(case, split, SEED, full=True).ok


@pytest.mark.parametrize("name", ["t11", "t12", "t23", "t26", "t30"])
def test_the_pieces_of_a_case_cover_each_row_once_and_stay_small(name):
    case = load_suite(HW4).cases[name]
    b, n, _ = map(int, case.shape)
    covered = 0
    for first, end, rows in pieces(ATTENTION, case.shape):
        low, high = rows or (0, n)
        assert covered == first * n + low
        covered += (end - first - 1) * n + high - low
        assert (end - first) * ATTENTION.unit_input_bytes(case.shape) <= max(
            piece.PIECE_BYTES, ATTENTION.unit_input_bytes(case.shape)
        )
    assert covered == b * n


def test_progress_goes_from_nothing_to_all_bytes(case, files):
    seen = []
    generate(case, files, SEED, progress=lambda done, total: seen.append((done, total)))
    total = case.input_bytes + case.output_bytes
    assert seen[0] == (0, total) and seen[-1] == (total, total)


# ---- what is on disk ------------------------------------------------------------------------------------------


def test_ensure_makes_only_what_is_missing_or_from_something_else(tmp_path):
    suite = load_suite(HW4)
    files = TestcaseFiles(tmp_path)
    cases = suite.select("s01,s02")
    assert [c.name for c in ensure(cases, suite, files)] == ["s01", "s02"]
    assert ensure(cases, suite, files) == ()
    files.input(cases[0]).unlink()
    assert [c.name for c in ensure(cases, suite, files)] == ["s01"]
    os.truncate(files.expected(cases[1]), 100)
    assert state(cases[1], files, suite.seed(cases[1])) == "other size"
    assert [c.name for c in ensure(cases, suite, files)] == ["s02"]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("seed", {"kind": "public", "id": "000000000000"}, "other seed"),
        ("shape", [2, 128, 64], "other shape"),
        ("generator", "older", "other generator"),
    ],
)
def test_files_made_from_something_else_are_recognised(case, files, key, value, says):
    generate(case, files, SEED)
    content = json.loads(files.sidecar(case).read_text())
    files.sidecar(case).write_text(json.dumps({**content, key: value}))
    assert state(case, files, SEED) == says


def test_the_sidecar_names_the_seed_without_holding_it(case, files):
    generate(case, files, hidden_seed("top secret text of the course 123"))
    text = files.sidecar(case).read_text()
    assert "top secret" not in text
    assert json.loads(text)["seed"] == {"kind": "hidden", "id": hidden_seed("top secret text of the course 123").id}


# ---- verify ---------------------------------------------------------------------------------------------------


def patch(path: Path, offset: int, data: bytes) -> None:
    with path.open("rb+") as file:
        file.seek(offset)
        file.write(data)


def forge_digests(case, files):
    """What someone who changes files and knows about digests would do."""
    import hashlib

    content = json.loads(files.sidecar(case).read_text())
    content["input"]["sha256"] = hashlib.sha256(files.input(case).read_bytes()).hexdigest()
    content["expected"]["sha256"] = hashlib.sha256(files.expected(case).read_bytes()).hexdigest()
    files.sidecar(case).write_text(json.dumps(content))


def test_verify_says_which_file_was_changed(case, files):
    generate(case, files, SEED)
    patch(files.input(case), 12 + 400, b"\0\0\0\0")
    (problem,) = (p for p in verify(case, files).problems if "SHA-256" in p)
    assert "s01.in" in problem and "generate s01" in problem


def test_a_file_found_unchanged_is_read_again_only_after_somebody_wrote_to_it(case, files):
    generate(case, files, SEED)
    read: list[int] = []
    for _ in range(2):
        assert changed_files(case, files, read.append, trust=True) == ()
    assert read and read == sorted(set(read)), "each byte once"
    patch(files.input(case), 12 + 400, b"\0\0\0\0")
    for _ in range(2):
        (problem,) = changed_files(case, files, trust=True)
        assert "s01.in was changed" in problem


def test_verify_finds_a_wrong_expected_value_though_the_digest_fits(case, files):
    generate(case, files, SEED)
    index = 2 * 128 * 32 + 127 * 32 + 5
    error = 9 - np.fromfile(files.expected(case), dtype="<f4")[index]
    patch(files.expected(case), 4 * index, np.float32(9).tobytes())
    forge_digests(case, files)
    found = verify(case, files, SEED)
    assert not found.ok
    assert f"s01.out: batch 2, row 127, column 5 differs from the oracle by {error:.3g}; generate" in found.problems[0]


def test_verify_samples_rows_unless_all_are_asked_for_and_says_how_far_it_is(case, files):
    generate(case, files, SEED)
    total = case.input_bytes + case.output_bytes
    read, recomputed = [], []
    assert verify(case, files, SEED, progress=lambda done, of: read.append((done, of))).values_recomputed == 3 * 16 * 32
    assert verify(
        case, files, SEED, full=True, progress=lambda done, of: recomputed.append((done, of))
    ).values_recomputed == (3 * 128 * 32)
    assert read[-1] == (total, total)
    assert recomputed[-3:] == [(total + total * unit // 3, 2 * total) for unit in (1, 2, 3)]


def test_verify_finds_an_input_that_the_seed_does_not_give_though_the_digest_fits(case, files):
    generate(case, files, SEED)
    patch(files.input(case), ATTENTION.input_layouts(case.shape)[0].offset(1), np.float32(1).tobytes())
    forge_digests(case, files)
    assert "s01.in: batch 1 does not follow from the seed" in verify(case, files, SEED).problems[0]


def test_verify_says_that_files_are_missing(case, files):
    found = verify(case, files, SEED)
    assert "s01.in is missing; generate s01 again" in found.problems[0]


# ---- interruptions --------------------------------------------------------------------------------------------


def interrupt(*_):
    raise KeyboardInterrupt


def test_ctrl_c_leaves_neither_half_files_nor_destroys_the_old_ones(case, files, monkeypatch):
    generate(case, files, SEED)
    before = {p.name: p.read_bytes() for p in files.folder.iterdir()}
    monkeypatch.setattr(making, "run_tasks", interrupt)
    with pytest.raises(KeyboardInterrupt):
        generate(case, files, public_seed("other"))
    assert {p.name: p.read_bytes() for p in files.folder.iterdir()} == before


def test_a_full_disk_is_reported_with_path_and_bytes_and_leaves_nothing(case, files, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(MachineFault) as caught:
        generate(case, files, SEED)
    message = str(caught.value)
    needed = case.input_bytes + case.output_bytes
    assert "s01.in" in message and "the disk is full" in message
    assert f"{needed:,} bytes" in message and "bytes are free" in message
    assert listing(files) == []


def test_a_folder_that_cannot_be_made_is_a_machine_fault(case, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineFault, match="cannot be written"):
        generate(case, TestcaseFiles(tmp_path / "file" / "sub"), SEED)


def test_what_a_killed_grader_left_is_removed_by_the_next(case, files):
    files.folder.mkdir()
    (files.folder / ".s01.in.4242.part").write_bytes(b"half")
    (files.folder / ".s02.in.4242.part").write_bytes(b"of another case")
    generate(case, files, SEED)
    assert listing(files) == [".s02.in.4242.part", "s01.in", "s01.json", "s01.out"]


def test_two_graders_at_once_make_a_case_once(tmp_path):
    suite, files = load_suite(HW4), TestcaseFiles(tmp_path)
    cases = suite.select("s01,s02,s03")
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend(c.name for c in ensure(cases, suite, files))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == ["s01", "s02", "s03"]
    assert all(verify(c, files, suite.seed(c)).ok for c in cases)


def test_a_killed_grader_takes_its_workers_along_and_leaves_no_finished_looking_case(case, files, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal, sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from grader.course.catalogue import TestcaseFiles, generate, piece\n"
        "from grader.course.seeds import public_seed\n"
        "from grader.course.testcase import load_suite\n"
        f"case = replace(load_suite(Path({str(HW4)!r})).cases['s01'], shape=(64, 128, 32))\n"
        "piece.PIECE_FLOPS = 1\n"
        "def die(done, total):\n"
        "    if done: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"generate(case, TestcaseFiles(Path({str(files.folder)!r})), public_seed('x'), die, 2)\n"
    )
    # The workers hold the pipe of stderr: reading it to its end waits for them, too.
    ended = subprocess.run(
        [sys.executable, str(script)],
        cwd=HW4.parent.parent,
        env={**os.environ, "PYTHONPATH": str(HW4.parent.parent)},
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert b"Traceback" not in ended.stderr
    assert all(name.endswith(".part") for name in listing(files)) and listing(files)
    assert state(case, files, SEED) == "missing"


# ---- workers --------------------------------------------------------------------------------------------------


def square(number: int) -> int:
    if number < 0:
        raise MachineFault(f"task {number} failed")
    return number * number


def die(number: int) -> int:
    os._exit(3)


def test_all_tasks_are_done_and_counted():
    seen: list[int] = []
    run_tasks(square, range(20), processes=2, done=seen.append)
    assert sorted(seen) == [n * n for n in range(20)]


def test_the_error_of_a_task_reaches_the_caller_as_it_was():
    with pytest.raises(MachineFault, match="task -1 failed"):
        run_tasks(square, [1, 2, -1, 3], processes=2)


def test_a_worker_that_dies_is_a_machine_fault():
    with pytest.raises(MachineFault, match="worker process of the grader ended"):
        run_tasks(die, [1, 2], processes=2)
