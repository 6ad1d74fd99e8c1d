"""Judges outputs: `check` compares it with the expected one, `diagnose` names the likely mistake.

`scan` compares value by value with the tolerance, in parallel; `corners` shows both side by side.
May import `records`, `course` and what is below them; runs nothing.
"""
