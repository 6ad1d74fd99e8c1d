"""The command line: the options of every command of `grader`, and the functions behind them.

`cli` turns failures into exit codes. `submission_cli`, `course_cli`, `class_cli` and `judge_cli` declare commands and
options; the other modules do the work: `submissions` (check, grade, run), `inspection` (profile, --sanitize),
`course_files` (testcases, baseline, assignments), `classroom` (grade a class), `class_results` (leaderboard, site,
gradebook, points), `complaints` (explain, diff, rerun), `stores`, `doctor`. Modules are loaded when a command needs
them, so that `grader --help` answers at once. May import every package; none imports this one.
"""
