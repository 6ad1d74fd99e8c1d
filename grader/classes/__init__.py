"""A whole class: who handed in what and when, grading it here (`batch`) or on Slurm (`cluster`), and final points.

`final_points` puts records, lateness and points entered by hand together; `comparable` says whether results compare;
`recheck` is the second look before a place on the leaderboard; `similarity` finds submissions that resemble each other.
May import `store`, `grading` and what is below them.
"""
