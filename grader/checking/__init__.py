"""Judges outputs: `check` compares an output with the expected one, and `diagnose` names the likely mistake.

`scan` compares the values in parallel. `corners` shows both outputs side by side, and `suspects` finds the line of a
diagnosis. May import `records`, `course` and the packages below them; runs no programs.
"""
