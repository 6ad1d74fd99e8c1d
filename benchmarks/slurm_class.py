"""The synthetic class through the two-node test Slurm: the same scores as on this machine, and how much two nodes help.

    python benchmarks/slurm_class.py OUT [--students 200] [--tests s01] [--programs 12] [--computing 16] [--waiting 12]

Needs root and Debian's slurmctld, slurmd, slurm-client and munge, and no GPU. The first `--students` of
synthetic_class.py are graded through both nodes, through one, and without Slurm, each with a build cache of its own.
Then two kinds of hand-ins are graded on both nodes and on one, and the times of the whole command compared:
`--computing` ones compile and compute, no two alike so that none is in a cache, and need idle cores to say anything
(each node has half of this machine's); `--waiting` ones compile and wait for 30 s, as a hand-in waits for its GPU, and
say what Slurm and the grader add. Exits 1 if a requirement does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from synthetic_class import CHECKOUT, essence, make_class, make_course

from grader.store import open_store

CLUSTER_SH = CHECKOUT / "tests/slurm/cluster.sh"
LEAST_GAIN = 1.8
WAIT_S = 30


def add_cluster(course: Path, folder: Path, partition: str, limit_s: int) -> None:
    """Make the course's cluster section: one job a hand-in with one core and one GPU. A run may take `limit_s`."""
    rules = course / "assignment/hw4/assignment.yaml"
    text = rules.read_text().partition("\ncluster:")[0]
    text = re.sub(r"emulator_wall_s: \d+", f"emulator_wall_s: {limit_s}", text)
    cluster = {"partition": partition, "gres": "gpu:1", "cpus": 1, "time_minutes": 10, "folder": str(folder)}
    rules.write_text(f"{text}\ncluster: {json.dumps(cluster)}\n")


def make_computing(folder: Path, count: int) -> None:
    """`count` hand-ins that compile and compute, each its own."""
    sources = [CHECKOUT / f"reference/hw4/{name}.cu" for name in ("tiled", "naive")]
    for number in range(count):
        source = sources[number % len(sources)]
        student = folder / f"s{number:03}"
        student.mkdir(parents=True, exist_ok=True)
        for header in source.parent.glob("*.cuh"):
            shutil.copy(header, student)
        (student / "hw4.cu").write_text(f"// {folder.name} {number}\n{source.read_text()}")


def make_waiting(folder: Path, count: int) -> None:
    """`count` hand-ins that wait, each its own."""
    for number in range(count):
        student = folder / f"s{number:03}"
        student.mkdir(parents=True)
        (student / "hw4.cu").write_text(f"#include <unistd.h>\nint main() {{ sleep({WAIT_S}); }} // hand-in {number}\n")


def grade(folder: Path, store: Path, tests: str, cache: Path, *options: str) -> float:
    """Grade a class and return the seconds."""
    command = [sys.executable, "-m", "grader", "grade", str(folder), "--class", "--tests", tests]
    command += ["--engine", "emulator", "--store", str(store), *options]
    began = time.monotonic()
    with store.with_suffix(".log").open("wb") as log:
        subprocess.run(
            command, cwd=CHECKOUT, stdout=log, stderr=log, check=False, env={**os.environ, "GRADER_CACHE": str(cache)}
        )
    return time.monotonic() - began


def records(store: Path) -> int:
    with open_store(store) as opened:
        return opened.counts()["records"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--tests", default="s01")
    parser.add_argument("--programs", type=int, default=12, help="different CUDA programs among them")
    parser.add_argument("--computing", type=int, default=16, help="computing hand-ins, on two nodes and on one")
    parser.add_argument("--waiting", type=int, default=12, help="waiting hand-ins, on two nodes and on one")
    asked = parser.parse_args()
    out = asked.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    make_course(out / "course")
    os.environ["PYTHONPATH"] = str(CHECKOUT)
    os.environ["SLURM_CONF"] = str(out / "slurm/slurm.conf")
    problems = []
    subprocess.run([CLUSTER_SH, "start", out / "slurm"], check=True)
    try:
        if asked.students:
            made = make_class(out / "class", asked.students, asked.programs, random.Random(1))
            print(f"{asked.students} hand-ins: {', '.join(f'{count} {kind}' for kind, count in made.most_common())}.")
            problems += compare_with_here(out, asked.tests, asked.students)
        for kind, make, count in (
            ("computing", make_computing, asked.computing),
            ("waiting", make_waiting, asked.waiting),
        ):
            if count:
                make_computing(out / "warm", 1)
                make(out / kind, count)
                problems += compare_nodes(out, asked.tests, kind)
    finally:
        subprocess.run([CLUSTER_SH, "stop", out / "slurm"], check=True)
    print("MUST HOLD: " + ("; ".join(problems) if problems else "all of it holds."))
    return 1 if problems else 0


def compare_with_here(out: Path, tests: str, students: int) -> list[str]:
    """Grade the class on two nodes, on one, and here, and return the differences."""
    add_cluster(out / "course", out / "shared", "both", limit_s=5)
    two = grade(out / "class", out / "slurm.sqlite", tests, out / "cache-slurm", "--cluster", "slurm")
    print(f"Through two nodes: {two:.0f} s, {records(out / 'slurm.sqlite')} records.", flush=True)
    add_cluster(out / "course", out / "shared", "one", limit_s=5)
    one_node = grade(out / "class", out / "one.sqlite", tests, out / "cache-one", "--cluster", "slurm")
    print(f"Through one node: {one_node:.0f} s, {one_node / two:.2f} times as long.", flush=True)
    seconds = grade(out / "class", out / "here.sqlite", tests, out / "cache-here")
    print(f"Without Slurm, on the same cores: {seconds:.0f} s, {records(out / 'here.sqlite')} records.", flush=True)
    one, other = essence(out / "slurm.sqlite"), essence(out / "here.sqlite")
    problems = [f"{len(one)} of {students} hand-ins are in the store"] if len(one) != students else []
    problems += [f"two nodes are {one_node / two:.2f} times one for the class"] * (one_node / two < LEAST_GAIN)
    if different := sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
        problems.append(f"the scores differ for {', '.join(different[:10])}")
    return problems


def compare_nodes(out: Path, tests: str, kind: str) -> list[str]:
    """Grade the hand-ins of `out`/`kind` on two nodes and on one; whether two are worth it."""
    seconds = {}
    for nodes, partition in ((2, "both"), (1, "one")):
        add_cluster(out / "course", out / "shared", partition, limit_s=60)
        store = out / f"{kind}-{nodes}.sqlite"
        cache = out / f"cache-{kind}-{nodes}"
        grade(out / "warm", out / f"warm-{kind}-{nodes}.sqlite", tests, cache)  # the emulator's own parts, once
        seconds[nodes] = grade(out / kind, store, tests, cache, "--cluster", "slurm")
        print(f"{records(store)} {kind} hand-ins, {nodes} node(s): {seconds[nodes]:.0f} s.", flush=True)
    gain = seconds[1] / seconds[2]
    print(f"Two nodes are {gain:.2f} times one for {kind} hand-ins.")
    return [f"two nodes are {gain:.2f} times one for {kind} hand-ins, expected {LEAST_GAIN}"] * (gain < LEAST_GAIN)


if __name__ == "__main__":
    sys.exit(main())
