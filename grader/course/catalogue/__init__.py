"""Makes the files of testcases, checks whether they are up to date, and verifies them.

A testcase has three files: NAME.in, NAME.out and NAME.json; only TestcaseFiles knows these names. NAME.out is the
float64 oracle's result, rounded to float32, with a relative error of at most 2^-24. NAME.json, the sidecar, records
what the other two were made from, their SHA-256, and the errors of a plain implementation where the operator has one.
Input and output are made together in pieces: some units, or some rows of a large unit. A piece needs nothing but the
seed, so processes share the pieces and write each at its own offset. Each process holds only one piece in memory.
"""

from grader.course.catalogue.making import QuickOracle, ensure, generate
from grader.course.catalogue.testcase_files import TestcaseFiles, changed_files, limits, read_sidecar, state
from grader.course.catalogue.verification import Verification, verify
