"""The foundation of all packages: errors, verdicts, names and paths, YAML and CSV, processes for heavy work, progress.

Nothing here depends on CUDA, a course or a submission. Imports no other package of the grader.
"""
