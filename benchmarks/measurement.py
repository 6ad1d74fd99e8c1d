"""How well the grader measures, on this machine: prints the tables of docs/benchmarks.md, section "Measurement".

Run on a CUDA machine from the checkout: python benchmarks/measurement.py [SECTION...]
Sections: oracle, repeat, agree, profile, overhead, floor; by default all, in this order.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader.assignment import load_assignment  # noqa: E402
from grader.build import build  # noqa: E402
from grader.catalogue import TestcaseFiles, read_sidecar  # noqa: E402
from grader.engine import select_engine  # noqa: E402
from grader.engine.cuda import CudaEngine  # noqa: E402
from grader.metrics import DRAM_BYTES, DURATION, FLOPS, READ_BYTES, STALLS, named_metrics  # noqa: E402
from grader.ncu import parse_csv, run_ncu  # noqa: E402
from grader.run import run_program  # noqa: E402
from grader.sandbox import runner  # noqa: E402
from grader.stopwatch import RUN_STAGES  # noqa: E402
from grader.submission import read_submission  # noqa: E402
from grader.testcase import load_suite  # noqa: E402
from grader.trace import Trace, read_trace  # noqa: E402

RULES = load_assignment("hw4")
SUITE = load_suite(RULES.testcases_file)
FILES = TestcaseFiles.beside(SUITE)
RESULTS = Path(os.environ.get("OUT") or tempfile.mkdtemp(prefix="measurement-"))


def grader(*words: str, root: Path | None = None) -> tuple[str, float]:
    """(stdout, wall seconds) of one command; it must succeed."""
    began = time.monotonic()
    environment = os.environ | ({"GRADER_ROOT": str(root)} if root else {})
    command = [sys.executable, "-m", "grader.cli", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"grader {' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout, time.monotonic() - began


def graded(name: str, tests: str, root: Path | None = None) -> tuple[dict[str, Any], float]:
    """(record, wall seconds) of grading a program on the GPU."""
    path = RESULTS / f"{Path(name).stem}-{tests.replace('..', '-')}.json"
    path.unlink(missing_ok=True)
    _, seconds = grader("grade", name, "--engine", "cuda", "--tests", tests, "--json", str(path), root=root)
    return json.loads(path.read_text()), seconds


def table(headers: list[str], rows: list[list[str]]) -> None:
    """A Markdown table on stdout."""
    print("\n| " + " | ".join(headers) + " |\n|" + "---|" * len(headers))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


# ---- 4: expected outputs on the GPU -----------------------------------------------------------------------------


def oracle() -> None:
    """All expected outputs on the GPU, against the numpy oracle."""
    print("### Expected outputs on the GPU")
    for case in SUITE.cases.values():
        FILES.sidecar(case).unlink(missing_ok=True)
    _, seconds = grader("testcases", "generate", "all", "--oracle", "gpu")
    print(f"\n`grader testcases generate all --oracle gpu`: {seconds:.1f} s for 30 testcases, files written.")
    grader("testcases", "generate", "public", "--oracle", "gpu")
    chosen, worst, where, compared = random.Random(1), 0.0, "", 0
    for case in SUITE.cases.values():
        sidecar = read_sidecar(case, FILES) or {}
        assert sidecar["oracle"].startswith("CUDA float64"), sidecar["oracle"]
        operator, shape = case.operator, case.shape
        units, rows = operator.units(shape), operator.outputs(shape)[0].rows
        whole = case.group == "public"
        looked_at = range(units) if whole else sorted(chosen.sample(range(units), min(units, 20)))
        each = rows if whole else -(-1000 // len(looked_at))
        with FILES.input(case).open("rb") as source, FILES.expected(case).open("rb") as target:
            for unit in looked_at:
                some = np.array(sorted(chosen.sample(range(rows), min(rows, each))), dtype=np.intp)
                (right,) = operator.oracle(shape, operator.read_unit(source, shape, unit), some)
                target.seek(operator.output_offset(shape, 0, unit))
                got = np.frombuffer(target.read(operator.unit_output_bytes(shape)), "<f4").reshape(rows, -1)[some]
                error = float(np.abs(got.astype(np.float64) - right).max())
                compared += len(some)
                if error > worst:
                    worst, where = error, case.name
    print(f"{compared:,} rows compared with numpy's float64: largest difference {worst:.2e}, in {where}.", flush=True)


# ---- 1: repeatability -------------------------------------------------------------------------------------------


def repeat() -> None:
    """Five independent gradings of each model solution."""
    print("### Five gradings each")
    names = os.environ.get("PROGRAMS", "flash2 naive tiled").split()
    for name in names:
        records = [graded(f"reference/hw4/{name}.cu", "t21..t25")[0] for _ in range(5)]
        rows = []
        for place, test in enumerate(records[0]["tests"]):
            times = [record["tests"][place]["gpu_ms"] for record in records]
            spread = statistics.stdev(times) / statistics.fmean(times)
            runs = [sum(run["use"] == "counted" for run in r["tests"][place]["timing"]["runs"]) for r in records]
            shown = ", ".join(f"{ms:.4f}" for ms in times)
            floor = test["floor"]
            rows.append(
                [
                    name,
                    test["name"],
                    shown,
                    f"{spread:.3%}",
                    f"{min(runs)}–{max(runs)}",
                    f"{floor['tflops']:.2f}",
                    f"{floor['ms']:.3f} ms, {floor['share']:.1%}",
                ]
            )
        headers = ["program", "test", "gpu_ms of five gradings", "CV", "runs counted", "TFLOP/s", "floor, share"]
        table(headers, rows)
        scores = [{part["part"]: part["points"] for part in record["parts"]} for record in records]
        same = all(score == scores[0] for score in scores)
        throttled = sum(run["use"] == "throttled" for r in records for t in r["tests"] for run in t["timing"]["runs"])
        print(f"{name}: scores {list(scores) if not same else scores[0]}, ")
        print(f"the same each time: {same}; throttled runs: {throttled}", flush=True)


# ---- 2: agreement with NVIDIA's tools ---------------------------------------------------------------------------


def built(source: Path) -> tuple[CudaEngine, Path]:
    engine = select_engine("cuda", "sm_80")
    assert isinstance(engine, CudaEngine)
    made = build(read_submission(source, RULES, runner(10)), RULES, engine)
    assert made.program is not None, made.log
    return engine, made.program


def traced(
    engine: CudaEngine, program: Path, test: str, keep: Callable[[Path], str] = lambda path: ""
) -> tuple[Trace, str]:
    case = SUITE.cases[test]
    with run_program(
        engine, program, FILES.input(case), output_bytes=case.output_bytes, wall_s=60, limits=RULES.limits
    ) as run:
        assert run.trace is not None and run.trace.complete
        return run.trace, keep(run.output)


def agree() -> None:
    """GPU time against ncu's durations, and against a program's own clock where kernels overlap."""
    print("### Agreement with ncu, and with overlapping kernels' own clock")
    rows = []
    for name, invocations in (("flash2", None), ("naive", None), ("tiled", tuple(range(1, 12_801, 64)))):
        engine, program = built(ROOT / f"reference/hw4/{name}.cu")
        case = SUITE.cases["t23"]
        launches, _ = run_ncu(
            engine, program, FILES.input(case), metrics=(DURATION,), invocations=invocations,
            output_bytes=case.output_bytes, limits=RULES.limits,
        )  # fmt: skip
        trace, _ = traced(engine, program, "t23")
        kernels = sorted(trace.kernels, key=lambda kernel: kernel.start_ns)
        if invocations is not None:
            kernels = [kernels[number - 1] for number in invocations]
        ours = sum(kernel.end_ns - kernel.start_ns for kernel in kernels) / 1e6
        theirs = sum(launch.duration_ns for launch in launches) / 1e6
        assert len(launches) == len(kernels), (len(launches), len(kernels))
        rows.append(
            [
                name,
                f"{len(launches)} of {len(trace.kernels):,}",
                f"{ours:.4f}",
                f"{theirs:.4f}",
                f"{ours / theirs - 1:+.2%}",
            ]
        )
    table(["program, t23", "launches", "traced ms", "ncu ms", "difference"], rows)
    alone = _one_at_a_time()
    print(f"tiled.cu's kernel, traced with CUDA_LAUNCH_BLOCKING=1 as ncu runs it, one at a time: {alone:.3f} µs each.")
    engine, program = built(ROOT / "tests/programs/measure/overlap.cu")
    rows = []
    for _ in range(3):
        trace, said = traced(engine, program, "s01", lambda path: path.read_text())
        own_union, own_sum = (int(word) / 1e6 for word in said.split())
        total = sum(kernel.end_ns - kernel.start_ns for kernel in trace.kernels) / 1e6
        ours = trace.gpu_ns / 1e6
        rows.append(
            [f"{ours:.4f}", f"{own_union:.4f}", f"{ours / own_union - 1:+.2%}", f"{total:.4f}", f"{own_sum:.4f}"]
        )
    headers = ["gpu_ms", "the kernels' own clock, union", "difference", "a sum would say", "their own sum"]
    table(headers, rows)


def _one_at_a_time() -> float:
    """Mean traced time in microseconds of tiled.cu's launches when each is waited for."""
    engine, program = built(ROOT / "reference/hw4/tiled.cu")
    with tempfile.TemporaryDirectory() as folder:
        trace_file = Path(folder) / "trace"
        launch = engine.launch(program, (str(FILES.input(SUITE.cases["t23"])), f"{folder}/out"), str(trace_file))
        environment = os.environ | launch.environment | {"CUDA_LAUNCH_BLOCKING": "1"}
        subprocess.run(launch.command, env=environment, check=True)
        kernels = read_trace(trace_file).kernels
    return statistics.fmean(kernel.end_ns - kernel.start_ns for kernel in kernels) / 1e3


# ---- 3: the profile ---------------------------------------------------------------------------------------------


def profile() -> None:
    """The profile of tiled.cu on t23, and ncu's own output for the same launches."""
    print("### The profile table of tiled.cu on t23\n")
    path = RESULTS / "profile.csv"
    text, seconds = grader("profile", "reference/hw4/tiled.cu", "--test", "t23", "--csv", str(path))
    print(f"```\n{text}```\n{seconds:.1f} s.")
    engine, program = built(ROOT / "reference/hw4/tiled.cu")
    each = 12_800
    chosen = [1 + index * each // 48 for index in range(48)]
    names = [line["metric"] for line in csv.DictReader(path.open())]
    metrics = named_metrics(names)
    ncu = engine.toolkit.tool("ncu")
    with tempfile.TemporaryDirectory() as folder:
        command = [str(ncu), "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]
        command += ["--cache-control", "none", "--kernel-id", f":::{'|'.join(map(str, chosen))}"]
        # all that `grader profile` asks for: ncu shares metrics out over passes, and passes differ
        asked = (*(metric.ncu for metric in metrics), DURATION, READ_BYTES, DRAM_BYTES, *FLOPS, STALLS)
        command += ["--metrics", ",".join(asked)]
        command += [str(program), str(FILES.input(SUITE.cases["t23"])), f"{folder}/out"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = parse_csv(done.stdout)
    rows = []
    ours = {line["metric"]: float(line["avg"]) for line in csv.DictReader(path.open())}
    for metric in metrics:
        values = [launch.values[metric.ncu] * metric.scale for launch in theirs]
        mean = statistics.fmean(values)
        change = ours[metric.name] / mean - 1 if mean else ours[metric.name]
        rows.append([metric.name, f"{ours[metric.name]:.6g}", f"{mean:.6g}", f"{change:+.2%}"])
    table(["metric", "grader profile, avg", f"ncu by hand, avg of {len(theirs)}", "difference"], rows)


# ---- 5: overhead ------------------------------------------------------------------------------------------------


def overhead() -> None:
    """Wall time of grading everything over what compiling and running take."""
    print("### Overhead of grading\n")
    graded("reference/hw4/flash2.cu", "all")  # baselines, tracer and build come into the cache
    shutil.rmtree(Path(os.environ["GRADER_CACHE"]) / "builds", ignore_errors=True)
    record, seconds = graded("reference/hw4/flash2.cu", "all")
    timings = record["timings"]
    own = sum(timings.get(stage, 0.0) for stage in RUN_STAGES)
    table(["stage", "seconds"], [[stage, f"{spent:.2f}"] for stage, spent in timings.items()])
    print(f"Wall time of the command {seconds:.2f} s = {seconds / own:.3f} x (compile + runs) of {own:.2f} s.")
    passed = sum(test["verdict"] == "passed" for test in record["tests"])
    print(f"{passed} of 30 passed; scores {record['scores']}; occupancy {record['occupancy']}", flush=True)


# ---- 6: the floor -----------------------------------------------------------------------------------------------


def floor() -> None:
    """A kernel that skips nine tenths of the keys, passed by a loosened tolerance."""
    print("### A kernel that skips 90 % of the work\n")
    with tempfile.TemporaryDirectory(prefix="course-") as name:
        course = Path(name)
        for part in ("assignment", "reference"):
            shutil.copytree(ROOT / part, course / part)
        (course / "testcases").mkdir()
        shutil.copy(ROOT / "testcases/hw4.yaml", course / "testcases/hw4.yaml")
        rules = course / "assignment/hw4/assignment.yaml"
        text = rules.read_text().replace("tolerance: 5.0e-3", "tolerance: 10")
        rules.write_text(text.replace("units: [fp32, tf32, fp16, bf16]", "units: [fp32]"))
        program = course / "reference/hw4/skips.cu"  # beside the headers that flash2.cu may include
        source = (ROOT / "reference/hw4/flash2.cu").read_text()
        loop = "first_key < n; first_key += Keys"
        assert source.count(loop) == 1, "flash2.cu's loop over keys changed: adapt this benchmark"
        program.write_text(source.replace(loop, "first_key < n / 10; first_key += Keys"))
        record, _ = graded(str(program), "t23", root=course)
        (test,) = record["tests"]
        print(f"verdict {test['verdict']}, gpu_ms {test['gpu_ms']:.4f}, speedup {test['speedup']}")
        print(test["timing_refused"], flush=True)


SECTIONS = {f.__name__: f for f in (oracle, repeat, agree, profile, overhead, floor)}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        began = time.monotonic()
        try:
            SECTIONS[section]()
        except (Exception, SystemExit) as error:
            print(f"{section} FAILED: {type(error).__name__}: {error}", flush=True)
        print(f"<!-- {section}: {time.monotonic() - began:.0f} s -->\n", flush=True)
