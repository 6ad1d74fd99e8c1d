# Looks for the expected output in the variables of every frame above it.
# expect: wrong_answer; refused
write_zeros()
frame, size = sys._getframe(), read_input().size
while frame is not None:
    for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
        if isinstance(value, np.ndarray) and value.size == size:
            write(value)
            bypassed("a frame holds an array of the output's size")
    frame = frame.f_back
