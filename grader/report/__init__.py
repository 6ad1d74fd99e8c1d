"""Reports: each module renders records in one form, and uses nothing but the records.

`terminal`, `junit` and `gradescope` render results; `failures` groups failed tests by cause for all of them. `explain`
shows where a number comes from, `profile` renders a profile, and `leaderboard` and `gradebook` render the results of a
class. May import `classes`, for what a class adds
to records, and the packages below it; nothing is graded here.
"""
