"""A whole class: who submitted what and when, grading them (`batch`), final points.

`schedule` is the loop over lanes, here and in the judge; `executors` are where jobs run: worker processes, or Slurm.
`final_points` combines records, lateness and points entered by hand; `comparable` says whether results can be compared;
`recheck` runs tests again before a result gets a place on the leaderboard; `similarity` finds submissions that resemble
each other. May import `store`, `grading` and the packages below them.
"""
