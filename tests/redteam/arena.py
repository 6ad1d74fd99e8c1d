"""Where hostile programs are graded: canaries that must not be reached, and what must not be left afterwards.

The canaries are what attackers look for, under names that the programs know: a secret, an answer, another student's
work next door, listeners on loopback, on an abstract socket and on one that is a file, a setting of the kernel.
`Arena.damage` says what became of them and what was left. Several arenas can be open on a machine: `Arena.lay` writes
the names of an arena's own canaries into the programs.
"""

import contextlib
import hashlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.base.paths import cache_folder
from grader.sandbox import cgroup
from grader.sandbox.scratch import wait_until_removed
from grader.sandbox.watcher import prefix_of

CANARY, PORT = "redteam-canary", "47321"
"""How programs call the folder with the canaries and the abstract socket, and the listener's port."""
SECRET = "CANARY-SECRET-of-the-hidden-testcases-0123456789"
ALICE = "CANARY-OF-ALICE: the work of another student\n"
_SMALL_BYTES = 16 << 20
_KERNEL_SETTING = Path("/proc/sys/kernel/core_pattern")


@dataclass
class Arena:
    """`submissions` is the folder for what is graded, with another student's work in it."""

    submissions: Path
    testcases: Path
    canary: Path
    listeners: list[socket.socket]
    before: dict[str, str] = field(default_factory=dict)

    def lay(self, path: Path, target: Path) -> Path:
        """Copy a program's file, with the names of this arena's canaries. Returns `target`."""
        target.parent.mkdir(exist_ok=True)
        port = str(self.listeners[0].getsockname()[1])
        text = path.read_bytes().replace(CANARY.encode(), self.canary.name.encode())
        target.write_bytes(text.replace(PORT.encode(), port.encode()))
        return target

    def remember(self) -> None:
        """Take what is there now for what must not change."""
        self.before = self._state()

    def damage(self) -> list[str]:
        """What was reached or left, as phrases; none when all is well. Also makes the arena ready for the next."""
        wait_until_removed()
        now = self._state()
        found = [f"{name} was changed" for name, what in now.items() if self.before.get(name) != what]
        found += [f"{name} was removed" for name in self.before if name not in now]
        for listener in self.listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                found.append(f"{listener.getsockname()!r} was reached")
        found += [f"process {pid} ({name}) is still there" for pid, name in _survivors()]
        ours = prefix_of(os.getpid())
        places = (Path("/tmp"), self.testcases, *cgroup.parents())
        found += [f"{path} is still there" for place in places for path in place.glob(f"{ours}*")]
        found += [f"{path} was made" for path in Path("/tmp").glob(f"{self.canary.name}?*")]
        self.before = now
        return found

    def _state(self) -> dict[str, str]:
        """Of everything that must not change: its mode, when it was written last and, as some testcases are gigabytes,
        the digest of a small one's content."""
        state = {str(_KERNEL_SETTING): _KERNEL_SETTING.read_text()}
        for folder in (self.canary, self.submissions, self.testcases):
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.name.startswith(".grader-"):
                    status = path.stat()
                    digest = hashlib.sha256(path.read_bytes() if status.st_size <= _SMALL_BYTES else b"").hexdigest()
                    state[str(path)] = (
                        f"{digest} {status.st_mode:o} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
                    )
        return state


@contextlib.contextmanager
def open_arena(folder: Path, testcases: Path) -> Iterator[Arena]:
    """An arena below `folder`; the canaries are removed again."""
    canary = Path(tempfile.mkdtemp(prefix=f"{CANARY}-", dir="/tmp"))
    canary.chmod(0o755)
    (canary / "secret").write_text(SECRET + "\n")
    (canary / "answer").write_bytes(bytes(1024))
    submissions = folder / "submissions"
    (submissions / "alice").mkdir(parents=True)
    for name in ("alice/hw4.cu", "alice.cu"):
        (submissions / name).write_text(f"// {ALICE}int main() {{ return 0; }}\n")
    for name in (".private/key.h", "alice/attention.cuh", "alice/notes.txt"):
        (submissions / name).parent.mkdir(exist_ok=True)
        (submissions / name).write_text(f"// {ALICE}")
    loopback = socket.create_server(("127.0.0.1", 0), backlog=16)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0{canary.name}")
    abstract.listen(16)
    named = socket.socket(socket.AF_UNIX)
    named.bind(str(canary / "socket"))
    named.listen(16)
    (canary / "socket").chmod(0o777)
    listeners = [loopback, abstract, named]
    for listener in listeners:
        listener.setblocking(False)
    arena = Arena(submissions, testcases, canary, listeners)
    arena.remember()
    try:
        yield arena
    finally:
        for listener in listeners:
            listener.close()
        shutil.rmtree(canary, ignore_errors=True)


def _survivors() -> list[tuple[int, str]]:
    """Processes that run a graded program; looked for twice, since the kernel may be at it."""
    found: list[tuple[int, str]] = []
    ours = prefix_of(os.getpid()).encode()
    for _ in range(20):
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    program = str((entry / "exe").readlink())
                    if program.startswith(f"{cache_folder()}/builds/"):  # not those of another grader here
                        found.append((int(entry.name), program))
                    words = (entry / "cmdline").read_bytes()
                    if ours in words and b"grader.plans.recording" in words:
                        found.append((int(entry.name), program))
        if not found:
            break
        time.sleep(0.01)
    return found
