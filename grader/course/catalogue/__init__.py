"""The files of testcases: making them, knowing whether they are the right ones, checking them again.

A case has three files, named by TestcaseFiles alone: NAME.in, NAME.out (the float64 oracle's result, rounded
to float32: at most 2^-24 of the value away from it) and NAME.json, which says what they were made from and their
SHA-256. Input and output are made together, in pieces of some units or, where a unit is large, some rows of one;
each piece needs nothing but the seed, so pieces are spread over processes and written at their own offsets, and
memory stays at one piece per process.
"""

from grader.course.catalogue.making import QuickOracle, ensure, generate
from grader.course.catalogue.testcase_files import TestcaseFiles, changed_files, read_sidecar, state
from grader.course.catalogue.verification import Verification, verify
