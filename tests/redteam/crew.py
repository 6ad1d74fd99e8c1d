"""The processes among which `python -m tests.redteam` shares the attacks.

Each has a cache of its own, by which its arena knows the programs that survive, and as an ordinary user also an id of
its own: the kernel counts the processes of a user. An attack is taken by the first process that asks for it; the
second pass deals them as the first did, since the builds are there.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.base.paths import cache_folder

NOBODY = 65534


@dataclass(frozen=True)
class Taken:
    """A folder with a file for each attack that a process has taken: who, and what became of it."""

    folder: Path

    def take(self, name: str) -> bool:
        """Whether this process is the first that asks for this attack."""
        with contextlib.suppress(FileExistsError):
            with self._file(name).open("x") as file:
                file.write(os.environ["GRADER_CACHE"])
            return True
        return False

    def note(self, name: str, *, bypassed: bool) -> None:
        """Note what became of it."""
        with self._file(name).open("a") as file:
            file.write(" bypassed" if bypassed else " stopped")

    def outcome(self, name: str) -> tuple[str, str]:
        """The cache of the process that took it, and "bypassed", "stopped", or nothing if that did not finish."""
        path = self._file(name)
        cache, _, outcome = (path.read_text() if path.exists() else "").partition(" ")
        return cache, outcome

    def _file(self, name: str) -> Path:
        return self.folder / name.replace("/", "-")


class Crew:
    """A number of processes, and their caches below `folder`, which all users can read."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._folder = folder
        folder.chmod(0o755)
        self._caches = [folder / f"cache-{number}" for number in range(jobs)]
        self._dealt: dict[Path, list[str]] = {}
        native = cache_folder() / "native"
        for cache in self._caches:
            cache.mkdir()
            if native.exists():  # compiled parts of the emulator
                shutil.copytree(native, cache / "native")

    def run(self, names: Sequence[str], words: Sequence[str], *, as_user: bool) -> tuple[int, list[str]]:
        """Try the attacks `names`. Returns how many bypassed the grader, and those that were not finished."""
        taken = Taken(Path(tempfile.mkdtemp(dir=self._folder)))
        taken.folder.chmod(0o1777)
        processes = []
        for number, cache in enumerate(self._caches):
            ours = self._dealt.get(cache, [] if self._dealt else names)
            if ours:
                command = [sys.executable, "-m", "tests.redteam", "--taken", str(taken.folder), *words, *ours]
                user = NOBODY - number
                if as_user:
                    subprocess.run(["chown", "-R", f"{user}:{user}", cache], check=True)
                    rights = (f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all")
                    command = ["setpriv", *rights, *command]
                changes = {"GRADER_CACHE": str(cache)} | ({"HOME": "/nonexistent"} if as_user else {})
                processes.append(subprocess.Popen(command, env=os.environ | changes))
        for process in processes:
            process.wait()
        outcomes = {name: taken.outcome(name) for name in names}
        for name, (cache_of, _) in outcomes.items():
            if not as_user and cache_of:
                self._dealt.setdefault(Path(cache_of), []).append(name)
        bypassed = sum(outcome == "bypassed" for _, outcome in outcomes.values())
        return bypassed, [name for name, (_, outcome) in outcomes.items() if not outcome]
