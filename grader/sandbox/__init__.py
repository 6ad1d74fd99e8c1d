"""Runs untrusted programs; see `supervise` for the theory of operation.

Only `quarantine` opens files that such a program could have touched, and `scratch` makes the folders that it runs in.
What such a program or its author wrote is parsed in the `room`; `walk` lists the files of a submitted
folder. May import `base`.
"""

from grader.sandbox.build_tools import linker, runner
from grader.sandbox.job import Job, Limits, Outcome, apart
from grader.sandbox.supervise import confinement, require, run, run_attached, tool_problem
