"""constraints.txt pins what pyproject.toml asks for, at versions that it allows."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NOT_INSTALLED_BY_CI = {"gpu", "cuda", "estimates", "triton", "slurm", "test-site"}
"""Extras that need a GPU or that their own targets install."""


def test_every_dependency_is_pinned_at_a_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {canonicalize_name(name): version for line in lines if "==" in line for name, version in [line.split("==")]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tested = [extras[name] for name in extras if name not in NOT_INSTALLED_BY_CI]
    wanted = [*project["dependencies"], *(each for requirements in tested for each in requirements)]
    for requirement in map(Requirement, wanted):
        version = pins.get(canonicalize_name(requirement.name), "")
        assert re.match(r"\d", version) and requirement.specifier.contains(version), requirement
