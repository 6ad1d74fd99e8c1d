"""What is left on this machine: processes, and files that are removed in the background."""

import contextlib
import os
import time
from pathlib import Path


def running(words: str) -> bool:
    """Whether any process of this machine has `words` in its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if words in command and f"/{os.getpid()}" not in str(entry):
                    return True
    return False


def goes(path: Path) -> bool:
    """Whether what is being removed in the background is gone soon."""
    for _ in range(500):
        if not path.exists():
            return True
        time.sleep(0.01)
    return False
