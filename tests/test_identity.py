"""Which grader made a record: version, commit, files. None of the three is invented."""

import subprocess
from pathlib import Path

import pytest

from grader.base import identity as module
from grader.base.identity import Identity, identity, package_sha256


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader/score.py").write_text("POINTS = 60\n")
    return tmp_path / "grader"


def test_the_hash_covers_every_file_but_what_python_compiled(package: Path) -> None:
    first = package_sha256(package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__/score.pyc").write_bytes(b"compiled")
    assert package_sha256(package) == first
    (package / "score.py").write_text("POINTS = 61\n")
    changed = package_sha256(package)
    (package / "score.py").rename(package / "points.py")
    assert len({first, changed, package_sha256(package)}) == 3


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("0.2", ("0.2", "")),
        ("0.2.dev7+g1a2b3c4", ("0.2.dev7", "1a2b3c4")),
        ("0.2.dev7+g1a2b3c4.d20261124", ("0.2.dev7", "1a2b3c4-dirty")),
    ],
)
def test_a_wheel_has_its_commit_in_its_version(
    installed: str, expected: tuple[str, str], package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PACKAGES", (package,))
    monkeypatch.setattr(module.metadata, "version", lambda name: installed)
    found = identity.__wrapped__()
    assert (found.version, found.commit) == expected


def test_a_checkout_asks_git_and_says_that_files_were_changed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, cwd=package.parent, check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(module, "PACKAGES", (package,))
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert identity.__wrapped__().commit == git("rev-parse", "HEAD")
    (package / "score.py").write_text("POINTS = 61\n")
    assert identity.__wrapped__().commit == git("rev-parse", "HEAD") + "-dirty"


def test_what_is_not_known_is_left_out() -> None:
    nothing = Identity("0.0", "", "ab" * 32)
    assert (str(nothing), nothing.release) == ("0.0, files abababababab", "0.0")


@pytest.mark.parametrize("commit", ["1a2b3c4d5e6f", "1a2b3c4d5e6f-dirty"])
def test_a_handouts_wheel_keeps_the_commit(commit: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = Identity("0.2.dev7", commit, "").release
    monkeypatch.setattr(module, "PACKAGES", (package,))
    monkeypatch.setattr(module.metadata, "version", lambda name: release)
    assert identity.__wrapped__().commit == commit
