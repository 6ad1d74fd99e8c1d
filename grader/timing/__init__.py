"""Measuring the time of a program, and deciding whether the time is credible.

`measurement` repeats runs on `fresh_inputs` until `stopping` ends them; `baseline` times the sequential program;
`floors` computes the least time that a GPU could need; `evidence` compares the trace with the outside clock.
May import `checking`, `records`, `programs` and the packages below them.
"""
