"""Runs the programs of a suite that the user has checked out: NVIDIA's cuda-samples, HeCBench or PolyBench-GPU.

`layouts` finds a suite's programs and which of them are in scope. `project` copies one, with its shared files, into a
separate folder, as a person would submit it. `causes` classifies the outcome of a run, and `__main__` runs the
programs. Nothing of a suite is kept here.
"""
