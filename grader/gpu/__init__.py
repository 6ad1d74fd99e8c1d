"""The GPU as a device: its properties, its users and its state during runs, read through NVML.

`lock` lets one grader at a time use a GPU, `idle` waits until no other program computes on it, and `outside_clock` is
the clock that no program can set. Nothing here knows of courses or submissions. May import `base`.
"""
