"""Judges outputs: `check` compares an output with the expected one, and `diagnose` names the likely mistake.

`scan` compares the values in parallel. `corners` shows both outputs side by side, and `slips` finds mistakes that the
source shows by itself. `watch` and `probes` read mistakes off recorded values and off the outputs of experiments.

May import `records`, `course` and the packages below them; runs no programs.
"""
