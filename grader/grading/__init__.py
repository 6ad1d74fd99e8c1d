"""Grades one submission, from its files to its record.

`pipeline.grade` grades a single file and each submission of a class in one order: rules, build, each testcase, then
the score. `one_test` takes a testcase through run, check and measurement. `bench` adds what grading on a GPU needs, and
`judgement` decides verdicts. `hidden_testcases` and `closer_look` define the additional runs and explain them.
May import `sanitizers`, `profiling`, `timing`, `checking`, `records`, `programs` and what is below them.
"""
