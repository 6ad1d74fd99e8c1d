"""Every feature program checks its own results against host arithmetic; each must pass, with nothing reported."""

from pathlib import Path

import pytest

from emulator.tests.programs import CONFORMANCE_FLAGS, HERE, build, execute, names_in, target_of

SOURCES = sorted((HERE / "conformance").glob("*.cu"))
CASES = [(source, name) for source in SOURCES for name in names_in(source)]


def test_no_two_feature_programs_have_one_name() -> None:
    names = [name for source in SOURCES for name in names_in(source)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("source", "name"), CASES, ids=[f"{s.stem}-{n}" for s, n in CASES])
def test_a_feature_gives_the_hosts_results(source: Path, name: str, tmp_path: Path) -> None:
    done = execute(build(source, flags=CONFORMANCE_FLAGS, target=target_of(source)), name, folder=tmp_path)
    assert done.output.strip().endswith(f"{name} ok"), done.output + done.errors
    assert done.exit_code == 0
    assert [d for d in done.findings() if d["check"] != "api"] == []


@pytest.mark.parametrize(("source", "name"), [c for c in CASES if c[0].stem in ("control", "warp", "subwarps")])
def test_it_does_without_a_linear_form(source: Path, name: str, tmp_path: Path) -> None:
    program = build(source, flags=CONFORMANCE_FLAGS, short_runs=True)
    assert execute(program, name, folder=tmp_path).output.strip().endswith(f"{name} ok")
