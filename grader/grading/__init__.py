"""Grades one submission, from its files to its record.

`pipeline` defines the order: rules, build, each testcase, then the score. `one_test` takes a testcase through run,
check and measurement. `bench` adds what grading on a GPU needs, and `judge` decides verdicts. `hidden_testcases` and
`closer_look` define the additional runs and explain them.
The same `pipeline.grade` grades a single file and each submission of a class.
May import `sanitizers`, `profiling`, `timing`, `checking`, `records`, `programs` and what is below them.
"""
