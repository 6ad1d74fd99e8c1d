"""A course: assignments, testcases and their files.

`assignment` and `testcase` read the two YAML files, `coherence` checks them against each other and the operator,
`catalogue` makes and verifies the testcases' files from `seeds`; `metrics` are those that an assignment may name.
May import `operators`, `sandbox` and `base`.
"""
