"""Running Nsight Compute: its command line, and every way in which it can have nothing to say.

Its place is taken by a shell script that writes what ncu wrote on an H200 (2026-11-21), or what it says on failing.
"""

from pathlib import Path

import pytest

from grader.course.assignment import Assignment
from grader.course.metrics import DURATION, OCCUPANCY
from grader.profiling import ncu
from grader.profiling.ncu import Launch, NotProfiled, ncu_options, parse_csv, run_ncu
from tests.support.timed_engine import TimedC, tool

RECORDED = (Path(__file__).parent / "fixtures" / "ncu" / "naive_s05.csv").read_text()


@pytest.fixture
def engine(tmp_path: Path) -> TimedC:
    return TimedC(tmp_path / "toolkit")


def profiled(engine: TimedC, tmp_path: Path, rules: Assignment, script: str) -> tuple[Launch, ...]:
    (engine.toolkit.root / "bin").mkdir(parents=True, exist_ok=True)
    (engine.toolkit.root / "recorded.csv").write_text(RECORDED)
    tool(engine.toolkit.root, "ncu", script.replace("RECORDED", str(engine.toolkit.root / "recorded.csv")))
    program, source = tmp_path / "program", tmp_path / "input"
    program.touch()
    source.touch()
    launches, wall_s = run_ncu(
        engine, program, source, metrics=(OCCUPANCY,), invocations=(1, 3), output_bytes=64, limits=rules.limits
    )
    assert wall_s > 0
    return launches


def test_clocks_and_caches_are_left_alone_and_launches_are_chosen() -> None:
    command = ncu_options(Path("/opt/ncu"), ("a.sum", "b.avg"), (1, 65, 129))
    assert command[0] == "/opt/ncu"
    words = " ".join(command)
    for option in (
        "--csv --page raw --print-units base",
        "--clock-control none",
        "--cache-control none",
        "--target-processes all",
        "--metrics a.sum,b.avg",
        "--kernel-id :::1|65|129",
    ):
        assert option in words
    assert "--kernel-id" not in ncu_options(Path("/opt/ncu"), ("a.sum",), None)


def test_what_it_wrote_to_its_log_is_read(engine: TimedC, tmp_path: Path, hw4: Assignment) -> None:
    launches = profiled(engine, tmp_path, hw4, "cat RECORDED")
    assert [launch.kernel.partition("(")[0] for launch in launches] == [
        "scores_kernel",
        "softmax_kernel",
        "output_kernel",
    ]
    assert all(launch.values[OCCUPANCY] > 0 and launch.values[DURATION] > 0 for launch in launches)


def test_what_a_program_prints_is_not_taken_for_measurements(engine: TimedC, tmp_path: Path, hw4: Assignment) -> None:
    with pytest.raises(NotProfiled, match="it did not say why"):
        profiled(engine, tmp_path, hw4, "cat RECORDED >&2; echo ==ERROR== 6474 >&2")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance '
            'Counters on the target device 0."; exit 1',
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        (
            'echo "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips '
            'option." >&2; exit 1',
            "does not support this GPU: Profiling is not supported on device 0",
        ),
        ('echo "==WARNING== No kernels were profiled."', "measured no kernel: No kernels were profiled"),
        ("head -c 600 RECORDED", "Nsight Compute measured no kernel"),
        ("exit 3", "it did not say why"),
        ("kill -SEGV $$", "it did not say why"),
    ],
)
def test_every_way_to_have_no_counters_is_one_sentence(
    engine: TimedC, tmp_path: Path, hw4: Assignment, script: str, words: str
) -> None:
    with pytest.raises(NotProfiled) as caught:
        profiled(engine, tmp_path, hw4, script)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_endless_run_is_stopped_and_smaller_ones_are_advised(
    engine: TimedC, tmp_path: Path, hw4: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ncu, "WALL_S", 0.3)
    with pytest.raises(NotProfiled, match=r"longer than 0\.3 s: profile a smaller test, or fewer launches"):
        profiled(engine, tmp_path, hw4, "exec sleep 60")


def test_without_ncu_it_is_said_how_to_get_it(
    engine: TimedC, tmp_path: Path, hw4: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.programs.toolkit.shutil.which", lambda name: None)
    with pytest.raises(NotProfiled, match="not installed"):
        run_ncu(engine, tmp_path, tmp_path, metrics=(), invocations=None, output_bytes=1, limits=hw4.limits)


def test_a_grid_of_odd_digits_is_read_as_far_as_it_goes() -> None:
    text = (
        '"ID","Kernel Name","Grid Size","Block Size"\n"","","",""\n"0","k","(\x1f280, \u00b2, 1)","('
        + "9" * 5000
        + ', 1, 1)"\n'
    )
    assert [launch.grid for launch in parse_csv(text)] == [(280, 1, 1)]
