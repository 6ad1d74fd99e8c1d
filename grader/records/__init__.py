"""The result record, and what is computed from a record alone: score, points, times with their uncertainty.

`record` is the document that every report is drawn from; `disclosure` decides which of a program's words it may quote.
May import `course` and what is below it; knows neither programs nor engines.
"""
