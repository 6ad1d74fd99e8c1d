"""A course: assignments, testcases and their files.

`assignment` and `testcase` read the two YAML files, and `coherence` checks them against each other and the operator.
`catalogue` makes the testcases' files from `seeds` and verifies them. `metrics` lists the metrics that an assignment
may name. May import `operators`, `sandbox` and `base`.
"""
