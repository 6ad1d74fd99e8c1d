# Prints without end.
# expect: wrong_answer | time_limit | runtime_error; within 120 s
write_zeros()
for _ in range(1 if BUILDING else 3000):
    sys.stdout.write("647483 " * 20000)
