"""Measures the cost of starting a program in the sandbox: `python -m benchmarks.sandbox`.

Times `/bin/true`, bare and confined as a submission is (namespaces, seccomp, control group, limits, trace socket), with
the median of 200 runs each. The promise is less than 20 ms more than without the sandbox.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from grader.sandbox import Job, Limits, bubblewrap, confinement, run
from grader.sandbox.scratch import scratch_folder

RUNS = 200
LIMITS = Limits(wall_s=20, memory_bytes=1 << 30, file_bytes=1 << 20, folder_bytes=1 << 24)


def median_ms(action: Callable[[], object]) -> tuple[float, float]:
    """Median and 95th percentile of the action's wall time, in milliseconds."""
    action()
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def main() -> None:
    print(confinement())
    with scratch_folder("benchmark") as folder:
        job = Job(("/bin/true",), folder)
        rows = [
            ("bare", median_ms(lambda: subprocess.run(["/bin/true"], check=True))),
            ("confined", median_ms(lambda: run(job, LIMITS))),
        ]
        bubblewrap.problem = lambda: "left out for this measurement"  # type: ignore[assignment]
        rows.append(("Landlock, where bubblewrap cannot run", median_ms(lambda: run(job, LIMITS))))
    for name, (median, late) in rows:
        print(f"{name:<40} {median:6.1f} ms   95th percentile {late:6.1f} ms")
    print(f"the sandbox costs {rows[1][1][0] - rows[0][1][0]:.1f} ms a start (promised: less than 20)")


if __name__ == "__main__":
    assert Path("/bin/true").exists()
    main()
