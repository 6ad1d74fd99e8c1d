"""Confinement where bubblewrap cannot run: Landlock, seccomp and resource limits, set by the process on itself.

Landlock (Linux 5.13, landlock(7)) restricts which files a process and its children can open. It hides no names and
provides no private /tmp: a program sees that a file exists, but can open only the job's paths and the system's programs
and libraries. Newer kernels also deny it TCP (ABI 4), signals to processes outside the sandbox, and the abstract
sockets of those processes (ABI 6). seccomp denies sockets, new sessions and namespaces. The process drops its
capabilities, which matters when the grader runs as root: CAP_PERFMON alone gives access to other processes'
environment, even where Landlock denies tracing (Linux 6.18). All this is weaker than bubblewrap, and records say which
of the two was used.

`Rules` are prepared before the fork; `Rules.apply` runs in the child and only makes system calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.sandbox import seccomp
from grader.sandbox.job import Job
from grader.sandbox.private import ETC, GPU_FACTS, SYSTEM

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on x86_64 and aarch64
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 22, 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64  # more than exist: Linux 6.18 has 41
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9

# Access rights to files, LANDLOCK_ACCESS_FS_*.
_EXECUTE, _WRITE, _READ, _READ_FOLDER = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READ_ONLY = _EXECUTE | _READ | _READ_FOLDER
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # version → how many of these rights it knows
_ANY_TCP = 3  # LANDLOCK_ACCESS_NET_BIND_TCP | CONNECT_TCP
_ANY_SCOPE = 3  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | SIGNAL

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_OWN_THREADS = Path("/proc/self/task")
"""The CUDA driver writes the names of its threads here, and does not start if it cannot. A rule cannot name processes
that do not exist yet, so the processes that a tool starts need write access to all of /proc."""
_ROOTS_SETTINGS = tuple(Path("/proc") / name for name in ("sys", "sysrq-trigger", "irq", "bus", "fs"))
"""Settings in /proc that root can write without any capability; containers mount them read-only."""

_libc = ctypes.CDLL(None, use_errno=True)


@cache
def version() -> int:
    """Landlock's version (ABI) in this kernel; 0 without it."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def tool_problem() -> str:
    """The reason why tools cannot start CUDA programs under these rules, as a phrase; '' if they can. Even with /proc
    open for writing, other processes are out of reach, because Landlock denies tracing any process outside the
    sandbox."""
    if version() == 0 or os.geteuid() != 0 or not any(_is_writable(path) for path in _ROOTS_SETTINGS):
        return ""
    return "run as root without bubblewrap, a tool that starts programs could let them change the kernel's settings"


def _is_writable(path: Path) -> bool:
    return path.exists() and not os.statvfs(path).f_flag & os.ST_RDONLY


@dataclass(frozen=True)
class Rules:
    """The rules of one run, ready to be applied. `ruleset` is a descriptor, or -1 without Landlock."""

    ruleset: int
    filter: bytes

    def apply(self) -> None:
        """Confine the calling process; this cannot be undone. Raises OSError."""
        _check(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0))
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _give_up_capabilities()
        if self.ruleset >= 0:
            _allow(self.ruleset, [_OWN_THREADS], _WRITE | _TRUNCATE)
            _check(_libc.syscall(_RESTRICT_SELF, self.ruleset, 0))
        if self.filter:
            code = ctypes.create_string_buffer(self.filter, len(self.filter))
            program = struct.pack("@HP", len(self.filter) // 8, ctypes.addressof(code))
            _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0))

    def close(self) -> None:
        if self.ruleset >= 0:
            os.close(self.ruleset)


def rules(job: Job) -> Rules:
    """Prepare the rules for `job` on this machine."""
    ruleset = _ruleset()
    if ruleset >= 0:
        everything = (1 << _RIGHTS_BY_ABI.get(version(), 16)) - 1
        _allow(ruleset, [*map(Path, SYSTEM), *(Path("/etc") / name for name in ETC), Path("/proc")], _READ_ONLY)
        _allow(ruleset, [*job.readable, *(map(Path, GPU_FACTS) if job.devices else ())], _READ_ONLY)
        _allow(ruleset, [*job.devices, *map(Path, _DEVICES)], _READ | _WRITE | _IOCTL)
        _allow(ruleset, [job.folder, *job.writable], everything)
        if job.starts_programs and not tool_problem():
            _allow(ruleset, [Path("/proc")], _WRITE | _TRUNCATE)
    code = seccomp.filter_program(namespaces=False, modes=job.changes_modes, processes=job.starts_processes)
    return Rules(ruleset, code or b"")


def reader_rules(readable: Iterable[Path]) -> Rules:
    """Prepare the rules for a process that reads these paths, writes nothing, and starts no process."""
    ruleset = _ruleset()
    if ruleset >= 0:
        _allow(ruleset, readable, _READ_ONLY)
    code = seccomp.filter_program(namespaces=False, modes=False, processes=False, signals=False)
    return Rules(ruleset, code or b"")


def _ruleset() -> int:
    """Create a ruleset without exceptions, which denies everything that this kernel's Landlock can deny."""
    abi = version()
    if abi == 0:
        return -1
    rights = (1 << _RIGHTS_BY_ABI.get(abi, 16)) - 1
    attributes = struct.pack("=QQQ", rights, _ANY_TCP if abi >= 4 else 0, _ANY_SCOPE if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    return _check(_libc.syscall(_CREATE_RULESET, attributes, size, 0))


def _allow(ruleset: int, paths: Iterable[Path], rights: int) -> None:
    known = (1 << _RIGHTS_BY_ABI.get(version(), 16)) - 1
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                here = rights & known
                rule = struct.pack("=Qi", here if path.is_dir() else here & _OF_FILES, descriptor)
                _check(_libc.syscall(_ADD_RULE, ruleset, 1, rule, 0))
            finally:
                os.close(descriptor)


def _give_up_capabilities() -> None:
    """Drop all capabilities. Programs executed later gain none either, because the bounding set is empty and
    no_new_privs is set. An ordinary user has none to drop and cannot change the bounding set; those calls just fail."""
    for number in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if (capset := _CAPSET.get(platform.machine())) is not None:
        _check(_libc.syscall(capset, struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
