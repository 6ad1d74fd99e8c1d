"""Compiling and running the CUDA programs of these tests. Executables are kept between runs, by content."""

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cudaemu import Extras, PlainHost, Workplace, compile_program, runtime_identity
from cudaemu.__main__ import with_lines
from cudaemu.nvcc import toolkit_of
from cudaemu.process import Completed, Runner, run_plainly
from cudaemu.toolkit import find_nvcc

HERE = Path(__file__).parent
CONFORMANCE_FLAGS = ("-std=c++17", "--extended-lambda")
"""Without -O3, which changes the host code alone: nvcc needs half the time, and PTX is the same."""

CHECKS = {
    "race": "race race_of_writes race_in_warp copy_not_awaited copy_before_kernel too_many_barriers outdated_read",
    "init": "uninitialised unwritten_shared unwritten_local never_written",
    "sync": "barrier_in_branch barrier_counts_differ mask_without_caller mask_not_reached mask_wrong_argument "
    "syncwarp_unmet deadlock_barrier deadlock_cluster deadlock_object deadlock_registers endless_loop "
    "endless_in_function loop_never_ends kernel_stopped expect_too_few object_gone wgmma_unfenced wgmma_registers "
    "wgmma_touched wgmma_under_way setmaxnreg bulk_unfinished bulk_still_read launches_endless host_endless",
    "api": "launch_refused too_much_shared copy_null copy_direction not_device_memory symbol_too_small out_of_memory "
    "call_failed graph_cycle bad_channels not_for_surfaces bad_tensor_map bad_free emulator_lacks",
    "emulator": "emulator_failed",
}
"""Kinds of findings by the check that finds them; all others are of the check of memory."""


def host(run: Runner = run_plainly) -> PlainHost:
    """A plain host with the cache of this repository's tests, if it is one of them that calls."""
    cache = os.environ.get("GRADER_CACHE")
    return PlainHost(run, Path(cache)) if cache else PlainHost(run)


def runner() -> list[str]:
    return shlex.split(os.environ.get("GRADER_TEST_RUNNER", ""))


def nvcc() -> Path:
    found = find_nvcc()
    assert found is not None
    return found


def toolkit_headers() -> Path:
    return toolkit_of(nvcc(), host(), HERE).include


def build(
    *sources: Path,
    flags: Sequence[str] = ("-O3", "-std=c++17"),
    watch: bool = False,
    count: bool = False,
    record: bool = False,
    short_runs: bool = False,
    target: str = "sm_80",
) -> Path:
    """The executable of some .cu files."""
    settings = repr((tuple(flags), watch, count, record, short_runs, target))
    content = _content(sources)
    digest = hashlib.sha256((runtime_identity() + settings + content).encode())
    output = kept_programs() / f"{sources[0].stem}-{digest.hexdigest()[:20]}"
    with only_one(output):
        if not output.exists():
            work = output.with_suffix(".work")
            shutil.rmtree(work, ignore_errors=True)  # of a run that was stopped
            with _alone_for_the_runtime():
                recalling = host(_keeping_what_nvcc_makes(content))
                made = compile_program(
                    sources, work / "program", Workplace(work), nvcc=nvcc(), host=recalling, flags=flags,
                    target=target, extras=Extras(watch=watch, count=count, record=record, short_runs=short_runs),
                ).path  # fmt: skip
            made.replace(output)
            shutil.rmtree(work)
    return output


def kept_programs() -> Path:
    """The folder of what these tests keep between runs."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grader" / "test-programs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _content(sources: Sequence[Path]) -> str:
    """A hash over the sources and the headers that they could include."""
    headers = {h for path in (HERE / "conformance/any.cu", *sources) for h in path.parent.glob("*.*h")}
    headers |= {h for path in sources for h in path.parent.parent.glob("*.cuh")}
    return hashlib.sha256(b"".join(path.read_bytes() for path in (*sources, *sorted(headers)))).hexdigest()


@contextmanager
def only_one(made: Path) -> Iterator[None]:
    """Tests that run side by side need the same: one of them makes it."""
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _alone_for_the_runtime() -> AbstractContextManager[None]:
    """The first build compiles the runtime as well: the others wait, and take it from the cache."""
    there = any(host().cache.glob("native/emulator-runtime-*"))
    return nullcontext() if there else only_one(kept_programs() / "runtime")


def _keeping_what_nvcc_makes(content: str) -> Runner:
    """A Runner. Host object and PTX of the same sources are compiled once: whether a program is watched, and for which
    processor's vectors it is translated, changes neither, and nvcc takes most of a build's time."""

    def run_or_recall(command: Sequence[str], folder: Path) -> Completed:
        made = Path(command[command.index("-o") + 1]) if "-o" in command else Path()
        if Path(command[0]).name != "nvcc" or made.suffix not in (".o", ".ptx"):
            return run_plainly(command, folder)
        words = repr([word.replace(str(made.parent), "") for word in command]) + os.environ.get("NVCC_CCBIN", "")
        kept = kept_programs() / f"nvcc-{hashlib.sha256((content + words).encode()).hexdigest()[:20]}{made.suffix}"
        with only_one(kept):
            if not kept.exists():
                done = run_plainly(command, folder)
                if done.exit_code != 0:
                    return done
                shutil.copy(made, kept.with_suffix(".half"))
                kept.with_suffix(".half").rename(kept)
        shutil.copy(kept, made)
        return Completed(0, "")

    return run_or_recall


@dataclass
class Execution:
    """What a program did."""

    exit_code: int
    output: str
    errors: str
    trace: list[dict[str, Any]] = field(default_factory=list)
    program: Path = Path("program")

    def findings(self, check: str | None = None) -> list[dict[str, Any]]:
        """The findings in the trace with the check that found them, files without folders, and lines of host code."""
        made = [self._placed(line) for line in self.trace if line["kind"] == "finding"]
        return [each for each in made if check in (None, each["check"])]

    def _placed(self, line: dict[str, Any]) -> dict[str, Any]:
        told = json.loads(with_lines(json.dumps(line, separators=(",", ":")), self.program))
        facts = {n: Path(v).name if n.endswith(("_at", "_file")) else v for n, v in told["facts"].items()}
        for name in [name for name, place in facts.items() if name.endswith("_at") and place != "?"]:
            facts[name.replace("_at", "_line")] = int(facts[name].rpartition(":")[2])
        check = next((check for check, kinds in CHECKS.items() if line["is"] in kinds.split()), "memory")
        here = line["line"] or facts.get("host_line", facts.get("last_line"))
        return {**line, "facts": facts, "line": here, "check": check}

    def kernels(self) -> list[dict[str, Any]]:
        return [t for t in self.trace if t["kind"] == "kernel"]


def execute(program: Path, *arguments: str, folder: Path, timeout_s: float = 60, **environment: str) -> Execution:
    """GRADER_TEST_RUNNER is a command to put before the program's: qemu-aarch64 -L …, say."""
    trace = folder / "trace.jsonl"
    trace.unlink(missing_ok=True)
    done = subprocess.run(
        [*runner(), str(program), *arguments], cwd=folder, capture_output=True, text=True, errors="replace",
        check=False, timeout=timeout_s, env={**os.environ, "GRADER_TRACE": str(trace), **environment},
    )  # fmt: skip
    return Execution(done.returncode, done.stdout, done.stderr, trace_in(folder), program)


def trace_in(folder: Path) -> list[dict[str, Any]]:
    trace = folder / "trace.jsonl"
    return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else []


def target_of(source: Path) -> str:
    """The GPU that a conformance file is for: hopper_*.cu needs a Hopper's."""
    return "sm_90a" if source.stem.startswith("hopper_") else "sm_80"


def names_in(source: Path) -> list[str]:
    """Names of the TESTs in a conformance file."""
    import re

    return re.findall(r"^TEST\((\w+)\)", source.read_text(), re.M)
