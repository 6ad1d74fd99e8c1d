"""`--share`: what continuous integration has time for.

The programs are chosen by what they use: those of conformance/ have all 100 instructions of the whole suite (and of
their 817 forms with modifiers 618; 162 of the others are shapes of wmma), those of seeded/ need every check,
counters.cu has the counters. test_share.py, which the share leaves out, plants faults that it must find.
"""

from pathlib import Path

import pytest

SHARE = {
    "test_a_feature_gives_the_hosts_results": "barrier_objects control floats halves hopper_async hopper_copies "
    "hopper_products integers matrices memory rare tensor textures warp",
    "test_a_seeded_bug_is_found_by_its_check_at_its_line": "bounds shared_races sync uninitialised",
    "test_nothing_is_reported_for_a_correct_program_that_looks_wrong": "correct",
}
"""Tests of which the share has those of some programs."""
WHOLE = "counted counters faults hazards nesting ptx shapes switches table templates translator_tables waiting"
"""NAME of files test_NAME.py that are in the share as they are."""
FOLDERS = (Path(__file__).parent, Path(__file__).parents[2] / "tests/emulated")


def pytest_report_header(config: pytest.Config) -> str:
    named = f"the share: tests of {WHOLE}; of the other files' tests, programs {' '.join(SHARE.values())}"
    return named if config.getoption("share") else ""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    if config.getoption("share"):
        left_out = [item for item in items if item.path.parent in FOLDERS and not _in_the_share(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _in_the_share(item: pytest.Function) -> bool:
    programs = SHARE.get(item.originalname)
    if programs is None:
        return item.path.stem.removeprefix("test_") in WHOLE.split()
    params = item.callspec.params
    source = getattr(params.get("bug"), "source", params.get("source"))
    return isinstance(source, Path) and source.stem in programs.split()
