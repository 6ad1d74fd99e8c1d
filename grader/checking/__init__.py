"""Judges outputs: `check` compares an output with the expected one, and `diagnose` names the likely mistake.

`scan` compares the values in parallel. `corners` shows both outputs side by side, `suspects` finds the line of a
diagnosis, and `slips` finds mistakes that the source shows by itself. May import `records`, `course` and the packages
below them; runs no programs.
"""
