"""Programs for those who maintain the grader: measurements, tables, fuzzing."""
