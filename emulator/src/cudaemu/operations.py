"""The operations that a recording of values tells apart (translate/watching.py, runtime/values.c)."""

OPERATIONS = (
    "none", "add", "sub", "mul", "fma", "div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "neg", "abs", "min", "max", "cvt",
    "load", "store", "atomic", "other",
)  # fmt: skip
"""What a node can be, by its number in the recording."""
