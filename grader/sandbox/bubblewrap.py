"""The command line that puts a program into a bubblewrap container (bwrap(1), Debian package bubblewrap).

The container has a read-only system, a private /tmp and /proc, a handful of device nodes, and the job's own paths, at
the same places as outside. It has no network except an empty loopback, no capabilities, and shows no other processes.
bwrap itself is process 1 of the container's process namespace: when bwrap or the grader dies, the kernel kills
everything else in it.

Everything in /proc other than the processes' folders is mounted read-only. bwrap covers /proc/sys only if that folder
itself is writable, which it never is. But if the grader runs as root, the program's user id outside the namespace is 0,
and the kernel then lets it write the files in /proc/sys even without capabilities. One of them is core_pattern, which
names a program that the kernel starts. The processes' own folders stay writable, because on a read-only /proc the first
CUDA call fails with cudaErrorOperatingSystem (driver 580).
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
"""Contents of the account files that a program sees, in place of the machine's own, which list its real users."""
_KERNEL_KNOBS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")
"""Writable paths in /proc that belong to no process; container engines protect the same ones."""
_WRITABLE = (Path("/tmp"), Path("/dev/shm"))
"""In-memory file systems, private to one run and removed after it."""
_TMP_BYTES = 256 << 20
_USER = "1000"


@cache
def problem() -> str | None:
    """Start bubblewrap once, and return why it does not work on this machine, or None if it does."""
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
    """Return bwrap and its arguments, followed by the job's command.

    bwrap writes JSON to `status_fd`. It contains an `exit-code` only if bwrap could set up the container; without one,
    bwrap itself failed, not the program. `accounts` maps the names in ACCOUNTS to descriptors of
    their contents. `hidden` lists paths inside the system folders that the container covers up.
    """
    # The child's PATH has only the folders that the job may read, so bwrap's own folder may be missing from it.
    program = shutil.which("bwrap") or "bwrap"
    words = [program, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
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
    for path in (*covers, Path("/dev"), Path("/")):
        words += ["--remount-ro", str(path)]
    words += ["--chdir", str(job.folder), "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    if seccomp_fd is not None:
        words += ["--seccomp", str(seccomp_fd)]
    return [*words, "--", *job.command]


def _parents_first(paths: Iterable[Path]) -> Iterator[Path]:
    """The paths made absolute, folders before their contents: a folder that is mounted later would hide the mounts
    inside it."""
    return iter(sorted({_mountable(path.absolute()) for path in paths}, key=lambda path: len(path.parts)))


def _covers(paths: Iterable[Path]) -> set[Path]:
    """Folders directly below a writable place such as /tmp that contain one of the paths. bwrap would make the folders
    on the way to a path writable. So these folders are mounted first, and made read-only at the end."""
    absolute = {path.absolute() for path in paths}
    tops = {
        Path(*path.parts[: len(place.parts) + 1]) for path in absolute for place in _WRITABLE if place in path.parents
    }
    return tops - absolute


def _mountable(path: Path) -> Path:
    """The path to mount for `path`. The container keeps links inside the system folders (/usr/local/cuda leads through
    /etc/alternatives on some machines), and bwrap cannot mount through a link. So the target is mounted."""
    return path.resolve() if any(map(path.is_relative_to, SYSTEM)) else path
