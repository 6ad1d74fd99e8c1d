"""Findings of compute-sanitizer and of the emulator, explained by the source, and the likeliest cause among them.

compute-sanitizer has four tools, named here as in the emulator: memory (memcheck), race (racecheck, shared memory
only), init (initcheck, global memory only), sync (synccheck). Each runs the program, built with -lineinfo, once on a
public sample. A tool counts as run only if it wrote its summary, the program launched kernels, and the tool finds the
fault in a canary (canary.cu) on the same machine: otherwise finding nothing proves nothing.

May import `profiling` and the packages below it.
"""

from grader.sanitizers.explained import Files, explained, likeliest, said_of
from grader.sanitizers.log import parse_report
from grader.sanitizers.text import render
from grader.sanitizers.tool import LEAKS, run_check, with_lines
from grader.sanitizers.tool_report import CHECKS, Check, Report, Seen, by_place, parse_checks
