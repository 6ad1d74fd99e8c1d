"""The result record, and everything computed from a record alone: score, points, times with their uncertainty.

`record` defines the document from which every report is drawn; `disclosure` decides how much of a program's output it
may quote. May import `course` and what is below it. Nothing here depends on programs or engines.
"""
