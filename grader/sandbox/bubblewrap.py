"""The command line that puts a program into a bubblewrap container (bwrap(1), Debian package bubblewrap).

Inside there is a read-only system, a private /tmp and /proc, a handful of device nodes, and the job's own paths,
where they are outside. No network but an empty loopback, no capability, no other process in sight. bwrap itself is
process 1 of the container's process namespace: when it dies, or the grader does, the kernel kills all the rest.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from grader.sandbox.job import Job

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group", "localtime", "nsswitch.conf")
_GPU_FACTS = ("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/sys/class/drm")
_TMP_BYTES = 256 << 20
_USER = "1000"


@cache
def problem() -> str | None:
    """Why bubblewrap cannot be used here, or None when it works: it is tried, not looked up."""
    path = shutil.which("bwrap")
    if path is None:
        return "bubblewrap is not installed (apt install bubblewrap)"
    command = [path, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if tried.returncode != 0:
        return f"bubblewrap cannot make its namespaces here: {tried.stderr.strip() or 'it did not say why'}"
    return None


def command_line(job: Job, environment: dict[str, str], seccomp_fd: int | None) -> list[str]:
    """bwrap and its arguments, then the job's own command."""
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--uid", _USER, "--gid", _USER, "--hostname", "sandbox"]
    for name in _SYSTEM:
        link = Path(name)
        words += ["--symlink", str(link.readlink()), name] if link.is_symlink() else ["--ro-bind-try", name, name]
    for name in _ETC:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for name in ("/tmp", "/dev/shm"):
        words += ["--size", str(_TMP_BYTES), "--tmpfs", name]
    for path in _parents_first(job.readable):
        words += ["--ro-bind", str(path), str(path)]
    if job.devices:
        for name in _GPU_FACTS:
            words += ["--ro-bind-try", name, name]
        for device in job.devices:
            words += ["--dev-bind", str(device), str(device)]
    for path in _parents_first((job.folder, *job.writable)):
        words += ["--bind", str(path), str(path)]
    words += ["--chdir", str(job.folder), "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    if seccomp_fd is not None:
        words += ["--seccomp", str(seccomp_fd)]
    return [*words, "--", *job.command]


def _parents_first(paths: Iterable[Path]) -> Iterator[Path]:
    """Absolute paths with folders before what lies in them, so that an inner mount is not hidden by an outer."""
    return iter(sorted({path.absolute() for path in paths}, key=lambda path: len(path.parts)))
