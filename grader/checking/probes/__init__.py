"""Reads mistakes off the outputs of probes: inputs that an operator chooses so that the output shows what was computed.

Attention is linear in V, so with V = I its output is the matrix of weights. Its logarithm is the score but for a
constant of the row: the slope, the keys that are left out, the sum that a row was divided by, and tiles that were not
rescaled can be read off, without a list of mistakes. What is declared: `grader/operators/probes.py`, `Operator.probes`.
"""
