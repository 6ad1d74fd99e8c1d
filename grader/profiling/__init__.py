"""A kernel's use of the hardware: Nsight Compute's metrics, the emulator's counters, occupancy, roofline, advice.

`ncu` and `counted_run` measure the metrics that `course.metrics` names, and `kernel_profile` combines them by kernel.
May import `timing` and the packages below it.
"""
