"""The GPU as a device: its properties, its users and its state during runs, read through NVML.

`lock` keeps graders apart, `ready` prepares a GPU for a submission, `outside_clock` is the clock that no program can
set. Knows no course and no submission. May import `base`.
"""
