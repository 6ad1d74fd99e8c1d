"""How long a program takes, and whether the time is credible.

`measurement` repeats runs on `fresh_inputs` until `stopping` ends them; `baseline` times the sequential program;
`floors` bounds from below what a GPU can need; `evidence` compares the trace with the outside clock.
May import `checking`, `records`, `programs` and what is below them.
"""
