"""Where tasks are done: `local` in worker processes, `slurm` in jobs of a cluster; `executor` is what both have."""
