"""Reports: each module draws one form of a Record, and from the Record alone.

`terminal`, `junit` and `gradescope` write results, `explain` where a number comes from, `profile` what a profile holds,
`leaderboard` and `gradebook` what a class came to. May import `classes`, for what a class adds to records, and what is
below it; grades nothing.
"""
