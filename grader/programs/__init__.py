"""Reads a submission, checks it against the source rules, builds it, runs it, and reads the run's trace.

`submission` reads the files that were handed in, with the flags that `makefile` finds in their Makefile. `source_rules`
looks for forbidden code. `build` compiles for an `engine` (a GPU or the emulator). `run` runs a program once, and
`trace` lists what the GPU did during the run. `gpu_oracle` runs the course's own kernels. Nothing here judges an
output. May import `course`, `emulator`, `gpu` and what is below them.
"""
