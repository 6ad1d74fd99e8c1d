"""From a submission's files to a run: reading, rules for sources, building, running, and the trace that a run leaves.

`submission` reads what was handed in, with `makefile` and its neighbours; `source_rules` looks for what is forbidden;
`build` compiles for an `engine` (a GPU, or the emulator); `run` is one run of a program; `trace` is what the GPU did.
`gpu_oracle` runs the course's own kernels. Says nothing about right or wrong.
May import `course`, `emulator`, `gpu` and what is below them.
"""
