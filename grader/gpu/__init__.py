"""The GPU as a device: what it is, who has it, what it does while something runs, read through NVML by the grader.

`lock` keeps graders apart, `ready` prepares a GPU for a submission, `outside_clock` is the clock that no program can
set. Knows no course and no submission. May import `base`.
"""
