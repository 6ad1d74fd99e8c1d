"""One submission, from its files to its record.

`pipeline` has the order: rules, build, each testcase, then the score; `one_test` takes a testcase through run, check
and measurement. `bench` is what a GPU adds; `judge` decides verdicts; `hidden_testcases` and `closer_look` say what
else is run, and why.
A class and a single file are graded by the same `pipeline.grade`.
May import `sanitizers`, `profiling`, `timing`, `checking`, `records`, `programs` and what is below them.
"""
