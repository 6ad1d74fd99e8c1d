"""What the clock outside the program says of honest programs: prints the table of docs/benchmarks.md.

Run on a CUDA machine from the checkout:

    python benchmarks/outside_clock.py [--tests t23] [--gradings 1] [--only NAME ...] [--json FILE]

Grades the model solutions and the honest variants so many times each, on all GPUs that there are, one grading at a
time on each. The columns, over all gradings and tests of a program:

    busy - traced    ms a run that the GPU was busy without a traced kernel or memset: smallest, largest
    of allowed       the largest share of what `grader.evidence` allows that was used; above 1 is a false alarm
    occupancy        achieved: by Nsight Compute, and as seen from outside, smallest and largest
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grader.engine.cuda import find_gpus  # noqa: E402
from tests.honest.__main__ import hand_in, variants  # noqa: E402

MODELS = ("naive", "tiled", "flash2", "tensor_cores", "hopper")


def handed_in(place: Path, only: Iterable[str]) -> list[Path]:
    """The model solutions and the honest variants, as files and folders that can be graded."""
    paths = [ROOT / "reference" / "hw4" / f"{name}.cu" for name in MODELS]
    paths += [hand_in(path, place) for path in variants()]
    return [path for path in paths if not only or path.stem in only]


def grade(path: Path, tests: str, gpu: str) -> list[dict[str, Any]]:
    """The record of one grading on that GPU; none where grading failed, which is printed."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "record.json"
        words = ["grade", str(path), "--assignment", "hw4", "--engine", "cuda", "--tests", tests, "--json", str(kept)]
        done = subprocess.run(
            [sys.executable, "-m", "grader", *words],
            cwd=ROOT,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": gpu},
            capture_output=True,
            text=True,
            check=False,
        )
        if not kept.exists():
            print(f"{path.stem} was not graded:\n{done.stdout}{done.stderr}", file=sys.stderr)
            return []
        return [json.loads(kept.read_text())]


def row(name: str, records: list[dict[str, Any]]) -> list[str]:
    """A program's row of the table."""
    tests = [test for record in records for test in record["tests"]]
    timings = [test["timing"] for test in tests if test.get("timing") and test["timing"].get("outside")]
    seen = [(timing["outside"], len(timing["runs"]) - 1) for timing in timings]
    extra = [(outside["busy_ms"] - outside["traced_ms"]) / runs for outside, runs in seen]
    share = [outside["busy_ms"] / outside["allowed_ms"] for outside, _ in seen]
    profiled = [profile["achieved"] for record in records for profile in record["profiles"] if profile["achieved"]]
    outside_occupancy = [outside["occupancy"] for outside, _ in seen if outside["occupancy"]]
    flags = sum(len(record["flags"]) for record in records)
    wrong = sum(test["verdict"] != "passed" for test in tests)
    return [
        name,
        str(len(records)),
        str(len(timings)),
        _range(extra, 2),
        f"{max(share):.2f}" if share else "-",
        f"{_range(profiled, 3)} / {_range(outside_occupancy, 3)}",
        f"{flags} flags, {wrong} not passed" if flags or wrong else "",
    ]


def _range(values: list[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}" if values else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tests", default="t23")
    parser.add_argument("--gradings", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--json", type=Path, help="write all records here")
    options = parser.parse_args()
    gpus: SimpleQueue[str] = SimpleQueue()
    found = find_gpus()
    for gpu in found:
        gpus.put(gpu.uuid)
    records: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def work(path: Path) -> None:
        gpu = gpus.get()
        try:
            made = grade(path, options.tests, gpu)
        finally:
            gpus.put(gpu)
        records[path.stem] += made
        print(*row(path.stem, made), sep="  ", file=sys.stderr, flush=True)
        if options.json is not None:  # each at once: a later failure loses none
            options.json.write_text(json.dumps(records))

    with tempfile.TemporaryDirectory(prefix="outside-clock-") as place:
        paths = handed_in(Path(place), options.only)
        subprocess.run(
            [sys.executable, "-m", "grader", "testcases", "generate", options.tests, "--assignment", "hw4"],
            cwd=ROOT,
            check=True,
        )
        with ThreadPoolExecutor(max(1, len(found))) as pool:
            list(pool.map(work, paths * options.gradings))
    headers = ["program", "gradings", "timings", "busy - traced, ms a run", "of allowed", "occupancy", ""]
    print(tabulate([row(name, records[name]) for name in records], headers=headers, tablefmt="github"))
    flagged = sum(bool(record["flags"]) for each in records.values() for record in each)
    print(
        f"\n{flagged} of {sum(map(len, records.values()))} gradings flagged; {found[0].name}, driver {found[0].driver}"
    )


if __name__ == "__main__":
    main()
