"""How long a program takes, and whether to believe it.

`measurement` repeats runs on `fresh_inputs` until `stopping` is content; `baseline` times the sequential program;
`floors` bounds from below what a GPU can need; `evidence` holds the trace against the clock outside.
May import `checking`, `records`, `programs` and what is below them.
"""
