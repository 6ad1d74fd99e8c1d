"""A whole class: who submitted what and when, grading on this machine (`batch`) or on Slurm (`cluster`), final points.

`final_points` combines records, lateness and points entered by hand; `comparable` says whether results can be compared;
`recheck` runs tests again before a result gets a place on the leaderboard; `similarity` finds submissions that resemble
each other. May import `store`, `grading` and the packages below them.
"""
