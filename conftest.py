"""Shared by the tests of grader and emulator: a cache of their own, so that a test never sees what a user's grader
built."""

from contextlib import suppress

import pytest

from grader.base.paths import cache_folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", action="store_true", help="of emulator/tests, tests/emulated, tests/isa: what CI has time for")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Workers that run side by side share it: what one of them compiled, the others take. Object code without anything
    of a program, such as the emulator's runtime, is the user's own, which `grader doctor` has compiled at set-up."""
    patch = pytest.MonkeyPatch()
    base = tmp_path_factory.getbasetemp()
    cache = (base if worker_id == "master" else base.parent) / "cache"
    cache.mkdir(exist_ok=True)
    native = cache_folder() / "native"
    native.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        (cache / "native").symlink_to(native)
    patch.setenv("GRADER_CACHE", str(cache))
    patch.setenv("GRADER_REPAIRS", "0")  # 10 to 17 s of processor time for each wrong program
    patch.setenv("GRADER_SECRET", "a secret of the tests, thirty-two bytes or more")
