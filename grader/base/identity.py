"""Says which grader this is: its version, its commit, and a hash of its files and of the emulator's.

The version comes from the tags, through the installed distribution. A checkout asks git for its commit; an installed
wheel has it in the local part of its version (`0.2.dev7+g1a2b3c4`). The hash alone decides whether two graders are the
same, since it also covers changes that nobody committed. Everything is read on first use, since `--help` needs none of
it.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import cudaemu

DISTRIBUTION = "cuda-homework-grader"
PACKAGES = (Path(__file__).resolve().parents[1], Path(cudaemu.__file__).resolve().parent)
"""The folders of `grader` and `cudaemu`, which one distribution installs."""
UNKNOWN_VERSION = "0.0"
"""The version of a grader that was installed from files without git; also `fallback_version` in pyproject.toml."""
_GIT_S = 10
_COMPILED = ".pyc"


@dataclass(frozen=True)
class Identity:
    """`version` is without a local part, "0.0" if not known. `commit` ends with "-dirty" if a checkout has changes, and
    is '' if not known. `package_sha256` covers the names and contents of the packages' files."""

    version: str
    commit: str
    package_sha256: str

    @property
    def release(self) -> str:
        """The version with the commit in its local part, as in a wheel's name."""
        digits, _, dirty = self.commit.partition("-")
        return f"{self.version}+g{digits[:12]}{f'.{dirty}' if dirty else ''}" if digits else self.version

    def __str__(self) -> str:
        return described(self.version, self.commit, self.package_sha256)


def described(version: str, commit: str, package_sha256: str) -> str:
    """A grader's identity for people: "0.2.dev7, commit 1a2b3c4d5e6f-dirty, files 90ab12cd34ef"."""
    digits, dash, dirty = commit.partition("-")
    words = [version, f"commit {digits[:12]}{dash}{dirty}" if commit else "", f"files {package_sha256[:12]}"]
    return ", ".join(word for word in (words if package_sha256 else words[:2]) if word)


@cache
def identity() -> Identity:
    """The identity of the grader that runs."""
    try:
        version, _, local = metadata.version(DISTRIBUTION).partition("+")
    except metadata.PackageNotFoundError:
        version, _, local = UNKNOWN_VERSION, "", ""
    return Identity(version, _commit_of_checkout(PACKAGES[0].parent) or _commit_in(local), package_sha256(*PACKAGES))


def _commit_of_checkout(root: Path) -> str:
    """The commit of the checkout at `root`; '' if there is none, or git cannot tell."""
    if not (root / ".git").exists():
        return ""
    words = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def _commit_in(local: str) -> str:
    """The commit in the local part of a version, "g1a2b3c4" or "g1a2b3c4.d20261124" (with changes, on that day)."""
    commit, _, changes = local.partition(".")
    return f"{commit.removeprefix('g')}{'-dirty' if changes else ''}" if commit.startswith("g") else ""


def package_sha256(*packages: Path) -> str:
    """The SHA-256 of the names and contents of all files in `packages`, without what Python compiled from them."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != _COMPILED):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(package.parent).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()
