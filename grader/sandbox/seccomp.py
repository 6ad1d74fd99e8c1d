"""The system calls that a confined program may not make, as a seccomp filter in classic BPF.

The filter is written by hand because it has only about 70 comparisons, and libseccomp would be one more dependency.
Denied calls fail with EPERM. `clone3` fails with ENOSYS, because its flags are in memory, where a filter cannot see
them; the C library then falls back to `clone`, whose flags the filter checks for new namespaces. Sockets may be local,
IP (the network namespace has an empty loopback) or netlink. Of the other families, some escape namespaces (vsock
reaches the host of a virtual machine), and others expose a lot of kernel code that no submission needs (AF_ALG). The
system call numbers come from the kernel's tables (asm/unistd_64.h, asm-generic/unistd.h).
"""

from __future__ import annotations

import errno
import platform
import struct

_LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_GREATER_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_UNKNOWN = 470
"""Calls from this number on came after Linux 6.18, or are those of x32: nobody has looked at what they can do."""
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS}

_THREAD = 0x10000  # CLONE_THREAD

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_ARCH_PRCTL = {"x86_64": 158}
_MATRIX_UNITS = 0x1023
"""ARCH_REQ_XCOMP_PERM requests AMX, with which one core computes as fast as ten. The assignment is graded for work on
the GPU, and little processor time is the evidence that the GPU did it (`grader.timing.evidence`)."""
_SOCKET = {"x86_64": 41, "aarch64": 198}
_NAMESPACED_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_LOCAL_FAMILIES = (1,)

# name: (x86_64, aarch64); None where that architecture lacks the call
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "fanotify_init": (300, 262),
    "memfd_secret": (447, 447),
    "lookup_dcookie": (212, 18),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "shmget": (29, 194),  # a detached segment escapes every limit on processes; CUDA works without this call
}

_DENIED_WITHOUT_NAMESPACES: dict[str, tuple[int | None, int | None]] = {
    "setsid": (112, 157),  # we find and kill processes by their session, so none may leave it
    "setpgid": (109, 154),
    "connect": (42, 203),  # Landlock has no rule for socket files, such as those of a container engine or an agent
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
}
"""Calls that namespaces would confine; denied where there are none."""

_OF_ITSELF_ONLY: dict[str, tuple[int, int]] = {
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}
"""Calls that a process may apply only to itself. Without namespaces they work on other processes of the same user, even
under Landlock (Linux 6.18): a program could kill the grader by limiting its processor time. The first argument is a
process; 0 is the caller."""

_NEW_PROCESSES: dict[str, tuple[int | None, int | None]] = {"fork": (57, None), "vfork": (58, None)}
"""Calls that start a process. `clone` is checked separately, because it also starts threads."""

_SIGNALS: dict[str, tuple[int | None, int | None]] = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
"""Landlock confines signals only since ABI 6."""

_CHANGES_OF_OTHERS_FILES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Calls that a read-only mount refuses, but that Landlock allows on any file of the same user."""


def filter_program(
    machine: str | None = None,
    *,
    namespaces: bool = True,
    modes: bool = True,
    processes: bool = True,
    signals: bool = True,
) -> bytes | None:
    """The filter for this machine's architecture, in the format of `bwrap --seccomp`; None for an architecture whose
    numbers are not listed here.

    Without `namespaces` it also denies the calls that namespaces would confine: networks, new sessions, System V
    objects, other processes' limits and priorities. Without `modes` it denies changes of files' modes, owners, times
    and attributes. Without `processes` it allows only threads to be started, which is all that CUDA needs. Without
    `signals` it denies sending any.
    """
    machine = machine or platform.machine()
    if machine not in _AUDIT:
        return None
    column = 0 if machine == "x86_64" else 1
    calls = _DENIED if namespaces else _DENIED | _DENIED_WITHOUT_NAMESPACES
    calls = calls if modes else calls | _CHANGES_OF_OTHERS_FILES
    calls = calls if processes else calls | _NEW_PROCESSES
    calls = calls if signals else calls | _SIGNALS
    families = _NAMESPACED_FAMILIES if namespaces else _LOCAL_FAMILIES
    denied = sorted(number for pair in calls.values() if (number := pair[column]) is not None)
    program = [
        _instruction(_LOAD_WORD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, _AUDIT[machine], true=1),
        _instruction(_RETURN, _KILL),  # 32-bit calls have other numbers
        _instruction(_LOAD_WORD, _NUMBER),
    ]
    program += [_instruction(_JUMP_GREATER_EQUAL, _UNKNOWN, false=1), _fail(errno.ENOSYS)]
    program += [_instruction(_JUMP_EQUAL, _CLONE3, false=1), _fail(errno.ENOSYS)]
    for number in denied:
        program += [_instruction(_JUMP_EQUAL, number, false=1), _fail(errno.EPERM)]
    if not namespaces:
        for number in (pair[column] for pair in _OF_ITSELF_ONLY.values()):
            program += [
                _instruction(_JUMP_EQUAL, number, false=4),
                _instruction(_LOAD_WORD, _FIRST_ARGUMENT),
                _instruction(_JUMP_EQUAL, 0, false=1),
                _instruction(_RETURN, _ALLOW),
                _fail(errno.EPERM),
            ]
    if machine in _ARCH_PRCTL:
        program += [
            _instruction(_JUMP_EQUAL, _ARCH_PRCTL[machine], false=4),
            _instruction(_LOAD_WORD, _FIRST_ARGUMENT),
            _instruction(_JUMP_EQUAL, _MATRIX_UNITS, false=1),
            _fail(errno.EPERM),
            _instruction(_RETURN, _ALLOW),
        ]
    program += [
        _instruction(_JUMP_EQUAL, _SOCKET[machine], false=len(families) + 3),
        _instruction(_LOAD_WORD, _FIRST_ARGUMENT),
        *(_instruction(_JUMP_EQUAL, family, true=len(families) - i) for i, family in enumerate(families)),
        _fail(errno.EAFNOSUPPORT),
        _instruction(_RETURN, _ALLOW),
    ]
    program += [
        _instruction(_JUMP_EQUAL, _CLONE[machine], false=3 if processes else 4),
        _instruction(_LOAD_WORD, _FIRST_ARGUMENT),
        *(() if processes else (_instruction(_JUMP_ANY_BIT, _THREAD, false=1),)),
        _instruction(_JUMP_ANY_BIT, _NEW_NAMESPACES, false=1),
        _fail(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _instruction(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _fail(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)
