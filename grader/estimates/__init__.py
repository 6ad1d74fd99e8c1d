"""Predicted GPU times, without a GPU. They are never grades: they earn no points and stand on no leaderboard.

Theory of operation. The emulator counts exactly what a program's PTX does. A GPU executes the machine code that ptxas
makes of it. ptxas says, for each machine instruction, which line of PTX it comes from, how long the next one must wait,
and for which results (`sass`).

1. A few blocks of each launch run on the emulator and count for all. Two sizes show how counts grow (`counts`).
2. The executions of each line of PTX, and that what flows into a block of machine code flows out of it, give the
   executions of each block of machine code: non-negative least squares (`flow`).
3. One scheduler of an SM executes these blocks with all warps that it holds, instruction by instruction, with ptxas's
   stalls and scoreboards and with pipes that are busy (`scheduler`, `pipes`). One wave stands for all, as in Hong and
   Kim, "An analytical model for a GPU architecture", ISCA 2009, and Huang et al., "GPUMech", MICRO 2014. But
   dependences are read from the machine code, not estimated from averages.
4. Shared memory serves a wavefront a cycle and L1 a line; L1 returns `l1_returned` bytes a cycle. What L1 misses
   follows from reuse distances (Mattson et al., 1970) and from the size that shared memory leaves. L2 has a rate per
   SM. DRAM moves what a launch touches first, if that is more than half of L2, what L2 has lost when it is used again,
   and local memory of the threads on the GPU beyond half of L2 (`model`).
5. Waves follow from occupancy and grid. Launches on several streams run as one grid. A launch costs 1.8 µs.
6. Intervals are quantiles of measured over predicted time, by kind of limit (calibration.json).

Nothing is fitted to a program. Seven constants were measured on an H100 for this model: what L1 returns to plain and to
read-only loads, one tag a cycle, the cost of a launch, DRAM's share of its bandwidth, what a lone warp gets of the
memory queue, and float atomics at one address. docs/estimates.md has every measured program and what the model lacks.
May import `programs` and below.
"""
