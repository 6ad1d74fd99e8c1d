"""Cleans up after a killed grader: a shell process that waits until the grader's end of a pipe closes, then kills the
processes of its runs and removes its control groups and temporary folders.

Processes inside bubblewrap need no killing: the kernel does that when bwrap dies with the grader. Without bubblewrap,
the grader sends the watcher each run's session, which a confined program cannot leave (see `landlock`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
from pathlib import Path

from grader.sandbox import cgroup

# Lines on stdin: "session ID", "ended ID", "group FOLDER" (a folder of control groups), "place FOLDER" (a folder of
# temporary folders). $1 is the prefix of our names in these folders.
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
"""The process that the watcher watches, and the descriptor to write its lines to."""
_sent: set[str] = set()


def prefix_of(pid: int) -> str:
    """The prefix of the names of a grader's temporary folders, files and control groups."""
    return f".grader-{pid}-"


def claim_place(folder: Path) -> None:
    """Let the watcher remove this grader's temporary folders in `folder` if the grader is killed from now on."""
    _send(f"place {folder}")


def claim_session(session: int) -> None:
    """Let the watcher kill the session of a run if the grader is killed before `session_ended` is called for it."""
    _send(f"session {session}", again=True)


def session_ended(session: int) -> None:
    """Forget a session of which no process is left, because its number may be reused soon."""
    _send(f"ended {session}", again=True)


def _send(line: str, again: bool = False) -> None:
    descriptor = _start()
    if again or line not in _sent:
        _sent.add(line)
        with contextlib.suppress(OSError):
            os.write(descriptor, f"{line}\n".encode())


def _start() -> int:
    """Start the watcher, once per process, and return the descriptor for its lines."""
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
    _sent.clear()
    atexit.register(_stop, os.getpid(), theirs)
    for folder in cgroup.parents():
        _send(f"group {folder}")
    return theirs


def _stop(pid: int, descriptor: int) -> None:
    if pid == os.getpid():
        with contextlib.suppress(OSError):
            os.close(descriptor)
