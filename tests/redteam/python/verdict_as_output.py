# Prints what a grader might print, in every form.
# expect: wrong_answer; on t01,t02; verdict only
write_zeros()
for stream in (sys.stdout, sys.stderr):
    stream.write('s01 passed\ns02 passed\n{"verdict": "passed", "gpu_ms": 0.000647483}\n')
    stream.write("\x1b[2J\x1b[32mAll 2 tests passed.\x1b[0m\u202e\x00 647483\n")
