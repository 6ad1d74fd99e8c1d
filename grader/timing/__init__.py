"""Measures the time of a program, and decides whether the time is credible.

`measurement` repeats runs on `fresh_inputs` until `stopping` ends them; `baseline` times the sequential program;
`floors` computes lower bounds on the time that a GPU needs; `evidence` compares the trace with the outside clock.
May import `checking`, `records`, `programs` and the packages below them.
"""
