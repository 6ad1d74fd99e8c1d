"""The command `grader`, also as `python -m grader`.

Importing the grader takes half a second. Ctrl-C during that time ends the command quietly; afterwards, `main` handles
it.
"""

import os
import signal

signal.signal(signal.SIGINT, lambda *_: os._exit(128 + signal.SIGINT))

from grader.commands.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
