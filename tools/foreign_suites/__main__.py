"""`python -m tools.foreign_suites PATH`: what a suite's programs do under `grader run`, as a table by cause.

Each result is kept at once. The same command continues where it was stopped, and starts again if the emulator has
changed. Ctrl-C ends the programs that run, and writes the table of the results so far.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from cudaemu import runtime_identity
from grader.base.paths import cache_folder
from grader.sandbox.scratch import scratch_folder
from tools.foreign_suites.causes import cause_of
from tools.foreign_suites.layouts import SUITES, Program, programs_of, suite_of
from tools.foreign_suites.project import copy_project

_KINDS = ("passes", "wrong result", "crash", "hang", "refused", "does not build", "waived", "out of scope")
_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Way:
    """How programs are run."""

    root: Path
    engine: str
    limit_s: float
    jobs: int

    @property
    def identity(self) -> str:
        """Results of another one do not count as results of this one."""
        return f"{self.engine} {runtime_identity()[:16]} {self.limit_s:g} s"


@dataclass(frozen=True)
class Result:
    """The outcome of one program, as it is kept."""

    name: str
    kind: str
    detail: str
    seconds: float
    identity: str


class Running:
    """Processes that are at work, to be ended together."""

    def __init__(self) -> None:
        self._all: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self.stopped = False

    def run(self, command: list[str], folder: Path, limit_s: float) -> tuple[int | None, str, str]:
        """(exit code, output, errors); no code when it took longer than `limit_s`."""
        with self._lock:
            if self.stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, errors="replace", start_new_session=True, env=os.environ | {"PYTHONPATH": str(_ROOT)},
            )  # fmt: skip
            self._all.add(process)
        try:
            out, err = process.communicate(timeout=limit_s)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _end(process)
            out, err = process.communicate()
            code = None
        finally:
            with self._lock:
                self._all.discard(process)
        if self.stopped:
            raise KeyboardInterrupt
        return (128 - code if code is not None and code < 0 else code), out, err

    def stop(self) -> None:
        """End all, and start no more."""
        with self._lock:
            self.stopped = True
            for process in self._all:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def examined(program: Program, way: Way, running: Running) -> Result:
    """Build and run one program in a folder of its own."""
    began = time.monotonic()
    with scratch_folder("suite") as folder:
        project = folder / program.name
        copy_project(program, way.root, project)
        command = [sys.executable, "-m", "grader", "run", "--engine", way.engine, ".", "--", *program.arguments]
        cause = cause_of(*running.run(command, project, way.limit_s), way.limit_s)
    return Result(program.name, cause.kind, cause.detail, round(time.monotonic() - began, 1), way.identity)


def run_all(programs: list[Program], results: dict[str, Result], kept: Path, way: Way) -> bool:
    """Run the programs that are in scope and have no result yet. Each result goes into `results` and the file `kept` at
    once. False when Ctrl-C came."""
    waiting = [program for program in programs if not program.out_of_scope and program.name not in results]
    running = Running()
    done = len(results)
    with ThreadPoolExecutor(way.jobs) as pool, kept.open("a", encoding="utf-8") as file:
        futures = [pool.submit(examined, program, way, running) for program in waiting]
        try:
            for future in as_completed(futures):
                result = future.result()
                results[result.name] = result
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
                done += 1
                detail = f": {result.detail}" if result.detail else ""
                print(f"[{done}] {result.name} {result.kind}{detail} ({result.seconds:.0f} s)", file=sys.stderr)
        except KeyboardInterrupt:
            running.stop()
            pool.shutdown(cancel_futures=True)
            return False
    return True


def read_kept(path: Path) -> list[Result]:
    """The results of earlier runs, without incomplete lines."""
    results = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, TypeError):
            results.append(Result(**json.loads(line)))
    return results


def table(suite: str, results: list[Result]) -> str:
    """The outcomes of the programs: counts, then every cause with its programs."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        groups[result.kind][result.detail].append(result.name)
    lines = [f"# {suite}: {len(results)} programs", "", "| what became of it | programs |", "|---|---|"]
    kinds = [kind for kind in _KINDS if kind in groups]
    lines += [f"| {kind} | {sum(map(len, groups[kind].values()))} |" for kind in kinds]
    for kind in kinds:
        lines += ["", f"## {kind}", ""]
        for detail, names in sorted(groups[kind].items(), key=lambda item: -len(item[1])):
            lines.append(f"- {f'{detail}: ' if detail else ''}{', '.join(sorted(names))}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.foreign_suites", description=summary)
    parser.add_argument("path", type=Path, help="a checkout of cuda-samples, HeCBench or PolyBench-GPU")
    parser.add_argument("--suite", choices=SUITES, help="by default what lies there")
    parser.add_argument("--only", default="", metavar="WORD", help="programs whose name has this word")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="write the table here")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs at a time")
    parser.add_argument(
        "--limit", type=float, default=120, metavar="SECONDS", help="of one program, its build included"
    )
    parser.add_argument("--engine", default="emulator", choices=("emulator", "cuda"))
    parser.add_argument("--again", action="store_true", help="forget the results that are kept")
    given = parser.parse_args(arguments)
    root = given.path.resolve()
    suite = given.suite or suite_of(root)
    programs = [program for program in programs_of(suite, root) if given.only in program.name] if suite else []
    if not programs:
        parser.error(f"{given.path} holds no such programs: give the top folder of a checkout of {', '.join(SUITES)}.")
    way = Way(root, given.engine, given.limit, given.jobs)
    kept = cache_folder() / "foreign-suites" / f"{suite}-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    if given.again:
        kept.unlink(missing_ok=True)
    names = {program.name for program in programs}
    results = {r.name: r for r in read_kept(kept) if r.identity == way.identity and r.name in names}
    finished = run_all(programs, results, kept, way)
    shown = [results[program.name] for program in programs if program.name in results]
    shown += [Result(p.name, "out of scope", f"needs {p.out_of_scope}", 0, "") for p in programs if p.out_of_scope]
    text = table(suite, shown)
    if given.write is not None:
        given.write.write_text(text, encoding="utf-8")
    print(text)
    if not finished:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
    return 0 if finished else 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
