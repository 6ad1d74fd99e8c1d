"""What a kernel did with the hardware: Nsight Compute's metrics, the emulator's counters, occupancy, roofline, advice.

`ncu` and `counted_run` get the numbers that `course.metrics` names; `kernel_profile` puts them together by kernel.
May import `timing` and what is below it.
"""
