"""Predicted GPU times, without a GPU. They are never grades: they earn no points and stand on no leaderboard.

Theory of operation. The emulator counts exactly what a program's PTX does. A GPU executes the machine code that ptxas
makes of it. ptxas says, for each instruction, which line of PTX it comes from, how long the next one must wait, and for
which results (`machine_code`).

1. A few blocks of each launch run on the emulator and count for all. Several sizes show how counts grow (`counts`).
2. The executions of each line of PTX, and that what flows into a block of machine code flows out of it, give the
   executions of each block of machine code: non-negative least squares (`flow`).
3. One scheduler of an SM executes these blocks with all warps that it holds, instruction by instruction (`scheduler`).
   One wave stands for all, as in Hong and Kim, "An analytical model for a GPU architecture", ISCA 2009, and Huang et
   al., "GPUMech", MICRO 2014. But dependences are read from the machine code, not estimated from averages.
4. What L1 misses follows from reuse distances (Mattson et al., 1970) and from the size that shared memory leaves. DRAM
   moves what a launch touches first, what L2 has lost, and local memory that has no room in it (`model`).
5. Waves follow from occupancy and grid. Launches on several streams run as one grid.
6. Intervals are quantiles of measured over predicted time, by kind of limit (calibration.json).

Nothing is fitted to a program. gpus.json has each constant with its source; docs/estimates.md has every measured
program, and what the model lacks. May import `programs` and below.
"""
