# Takes all memory when it runs.
# expect: memory_limit | runtime_error; within 120 s
hoard = []
while not BUILDING:
    hoard.append(np.ones(1 << 26, np.float32))
