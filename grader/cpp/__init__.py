"""The one reader of C++: what a CUDA source contains, with its lines, by tree-sitter's grammar of CUDA.

`read_source` gives the functions, loops, branches, calls, launches, barriers, allocations and copies of a submission as
values. `calls_in` (in calls.py, for the room) finds the calls of some functions in preprocessed text. An error in a
source stays local to its line. What is read is hostile, so it is read in the room.

May import `findings`, `sandbox` and the packages below them.
"""
