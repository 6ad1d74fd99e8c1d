"""The command line: what each command of `grader` takes, calls and prints.

`cli` and `class_cli` declare the commands and their options; each of the other modules implements a family of commands:
`submissions` (check, grade, run), `course_files` (testcases, baseline, assignments), `inspection` (profile and
--sanitize), `classroom` (all for a class), `complaints` (explain, diff, rerun), `doctor`. Modules are loaded when a
command needs them, so that `grader --help` answers at once. May import every package; none imports this one.
"""
