"""Grading a class on a Slurm cluster; `slurm` has the theory of operation."""

from grader.classes.cluster.slurm import grade_on_slurm
