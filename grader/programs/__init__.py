"""Takes a submission from its files to a run: reads, checks source rules, builds, runs, and reads the run's trace.

`submission` reads the files that were handed in, with the help of `makefile` and its neighbours. `source_rules` looks
for forbidden code. `build` compiles for an `engine` (a GPU or the emulator). `run` runs a program once, and `trace`
lists what the GPU did meanwhile. `gpu_oracle` runs the course's own kernels. Nothing here judges an output.
May import `course`, `emulator`, `gpu` and what is below them.
"""
