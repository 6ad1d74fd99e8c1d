"""The result record, and everything computed from a record alone: score, points, times with their uncertainty.

`record` defines the document from which every report is made, and `disclosure` decides how much of a program's output a
record may quote. `score` applies the rubric, `points` adds points entered by hand, and `conditions` tells which records
can be compared. May import `course` and what is below it. Nothing here depends on programs or engines.
"""
