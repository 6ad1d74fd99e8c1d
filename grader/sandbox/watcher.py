"""What outlives a killed grader, for a moment: a shell that waits for the grader's end of a pipe to close, then ends
the processes of its runs and removes its control groups and temporary folders.

Inside bubblewrap nothing needs ending: the kernel does it when bwrap dies with the grader. Without it, the watcher is
told each run's session, which a confined program cannot leave there (see `landlock`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
from pathlib import Path

from grader.sandbox import cgroup

# Lines on stdin: "session ID", "ended ID", "group FOLDER" (where control groups are), "place FOLDER" (where temporary
# folders are).
# $1 is the beginning of our names in them.
_SCRIPT = r"""
trap '' INT TERM HUP
sessions= groups= places=
nl='
'
while IFS=' ' read -r kind value; do
    case $kind in
        session) sessions="$sessions $value" ;;
        ended)
            living=
            for session in $sessions; do [ "$session" = "$value" ] || living="$living $session"; done
            sessions=$living ;;
        group) groups=$groups$value$nl ;;
        place) places=$places$value$nl ;;
    esac
done
for session in $sessions; do pkill -KILL -s "$session"; done
IFS=$nl
for again in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    left=
    for folder in $groups; do
        for group in "$folder/$1"*; do
            [ -d "$group" ] || continue
            while read -r pid; do kill -KILL "$pid"; done < "$group/cgroup.procs"
            rmdir "$group" || left=yes
        done
    done
    for folder in $places; do
        for scratch in "$folder/$1"*; do
            [ -e "$scratch" ] || continue
            rm -rf --one-file-system -- "$scratch" || { chmod -R u+rwx -- "$scratch"; left=yes; }
        done
    done
    [ -z "$left" ] && break
    sleep 0.1
done
"""

_watcher: tuple[int, int] | None = None
"""(the process it watches, the descriptor to write to)."""
_told: set[str] = set()


def prefix_of(pid: int) -> str:
    """How the names of a grader's temporary folders, files and control groups begin."""
    return f".grader-{pid}-"


def claim_place(folder: Path) -> None:
    """From now on, temporary folders of this grader in `folder` are removed if it is killed."""
    _tell(f"place {folder}")


def claim_session(session: int) -> None:
    """The session of a run is ended if the grader is killed, until `session_ended` is told of it."""
    _tell(f"session {session}", again=True)


def session_ended(session: int) -> None:
    """Nothing of the session is left: its number may soon be another's."""
    _tell(f"ended {session}", again=True)


def _tell(line: str, again: bool = False) -> None:
    descriptor = _start()
    if again or line not in _told:
        _told.add(line)
        with contextlib.suppress(OSError):
            os.write(descriptor, f"{line}\n".encode())


def _start() -> int:
    """Start the watcher once per process; the descriptor it listens to."""
    global _watcher
    if _watcher is not None and _watcher[0] == os.getpid():
        return _watcher[1]
    ours, theirs = os.pipe()
    subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "grader-watcher", prefix_of(os.getpid())],
        stdin=ours,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    os.close(ours)
    os.set_inheritable(theirs, False)
    _watcher = (os.getpid(), theirs)
    _told.clear()
    atexit.register(_stop, os.getpid(), theirs)
    for folder in cgroup.parents():
        _tell(f"group {folder}")
    return theirs


def _stop(pid: int, descriptor: int) -> None:
    if pid == os.getpid():
        with contextlib.suppress(OSError):
            os.close(descriptor)
