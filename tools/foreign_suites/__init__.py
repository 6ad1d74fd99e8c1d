"""Runs the programs of a suite that the user has checked out: NVIDIA's cuda-samples, HeCBench or PolyBench-GPU.

`layouts` finds a suite's programs and what of them is in scope, `project` copies one with what it shares with others
into a folder of its own, as a person would hand it in, `causes` says what became of a run, `__main__` runs them.
Nothing of a suite is kept here.
"""
