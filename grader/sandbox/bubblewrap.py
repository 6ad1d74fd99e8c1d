"""The command line that puts a program into a bubblewrap container (bwrap(1), Debian package bubblewrap).

Inside there is a read-only system, a private /tmp and /proc, a handful of device nodes, and the job's own paths,
where they are outside. No network but an empty loopback, no capability, no other process in sight. bwrap itself is
process 1 of the container's process namespace: when it dies, or the grader does, the kernel kills all the rest.

What /proc has beside processes is read-only inside. bwrap covers /proc/sys only where it finds it writable as a
folder, which it never is; but when the grader runs as root, its user id outside the namespace is 0, and by that alone
the kernel lets a program without any capability write the files in it, such as core_pattern, which names a program
that the kernel starts. Processes' own folders stay writable: on a read-only /proc the first CUDA call fails with
cudaErrorOperatingSystem (driver 580).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from grader.sandbox.job import Job
from grader.sandbox.private import ETC, GPU_FACTS, SYSTEM

ACCOUNTS = {
    "/etc/passwd": b"student:x:1000:1000::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "/etc/group": b"student:x:1000:\nnogroup:x:65534:\n",
}
"""Files that a program finds in place of the machine's own: who has an account here is nobody's business."""
_KERNEL_KNOBS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")
"""What in /proc is not a process and takes writes; container engines protect the same."""
_WRITABLE = (Path("/tmp"), Path("/dev/shm"))
"""File systems in memory, private to a run and gone after it."""
_TMP_BYTES = 256 << 20
_USER = "1000"


@cache
def problem() -> str | None:
    """Why bubblewrap cannot be used here, or None when it works: it is tried, not looked up."""
    path = shutil.which("bwrap")
    if path is None:
        return "bubblewrap is not installed (apt install bubblewrap)"
    command = [path, "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if tried.returncode != 0:
        return f"bubblewrap cannot make its namespaces here: {tried.stderr.strip() or 'it did not say why'}"
    return None


def command_line(
    job: Job,
    environment: dict[str, str],
    *,
    seccomp_fd: int | None,
    status_fd: int,
    accounts: Mapping[str, int],
    hidden: Iterable[Path],
) -> list[str]:
    """bwrap and its arguments, then the job's own command.

    bwrap writes JSON to `status_fd`; there is an `exit-code` in it only if the container could be set up, which
    tells its own failure from the program's. `accounts` are descriptors of the contents of ACCOUNTS, `hidden` paths
    inside the system that are covered.
    """
    words = ["bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--json-status-fd", str(status_fd)]
    words += ["--uid", _USER, "--gid", _USER, "--hostname", "sandbox"]
    for name in SYSTEM:
        link = Path(name)
        words += ["--symlink", str(link.readlink()), name] if link.is_symlink() else ["--ro-bind-try", name, name]
    for path in hidden:
        words += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    for name in ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name, descriptor in accounts.items():
        words += ["--ro-bind-data", str(descriptor), name]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for place in _WRITABLE:
        words += ["--size", str(_TMP_BYTES), "--tmpfs", str(place)]
    covers = sorted(_covers((*job.readable, job.folder, *job.writable)))
    for path in covers:
        words += ["--tmpfs", str(path)]
    for path in _parents_first(job.readable):
        words += ["--ro-bind", str(path), str(path)]
    if job.devices:
        for name in GPU_FACTS:
            words += ["--ro-bind-try", name, name]
        for device in job.devices:
            words += ["--dev-bind", str(device), str(device)]
    for path in _parents_first((job.folder, *job.writable)):
        words += ["--bind", str(path), str(path)]
    for name in _KERNEL_KNOBS:
        words += ["--ro-bind-try", name, name]
    for path in (*covers, Path("/")):
        words += ["--remount-ro", str(path)]
    words += ["--chdir", str(job.folder), "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    if seccomp_fd is not None:
        words += ["--seccomp", str(seccomp_fd)]
    return [*words, "--", *job.command]


def _parents_first(paths: Iterable[Path]) -> Iterator[Path]:
    """Absolute paths with folders before what lies in them, so that an inner mount is not hidden by an outer."""
    return iter(sorted({_mountable(path.absolute()) for path in paths}, key=lambda path: len(path.parts)))


def _covers(paths: Iterable[Path]) -> set[Path]:
    """Folders directly in a place that is writable inside, where something lies deeper: what bwrap makes on the way to
    it would be writable too, so these are made beforehand, and are read-only in the end."""
    absolute = {path.absolute() for path in paths}
    tops = {
        Path(*path.parts[: len(place.parts) + 1]) for path in absolute for place in _WRITABLE if place in path.parents
    }
    return tops - absolute


def _mountable(path: Path) -> Path:
    """Where to mount a path. Inside the system, links are shown as they are (/usr/local/cuda leads through
    /etc/alternatives on some machines), and bwrap cannot mount through one: what a link leads to is shown."""
    return path.resolve() if any(map(path.is_relative_to, SYSTEM)) else path
