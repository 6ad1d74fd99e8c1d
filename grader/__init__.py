"""Autograder for CUDA homework: builds, runs, checks, times and scores `.cu` programs."""

__version__ = "0.1.0"
