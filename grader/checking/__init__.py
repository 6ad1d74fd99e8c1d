"""Judges outputs: `check` compares an output with the expected one, and `diagnose` names the likely mistake.

`scan` compares value by value with the tolerance, in parallel. `corners` shows both outputs side by side, and
`suspects` finds the line of a diagnosis. May import `records`, `course` and the packages below them; runs no programs.
"""
