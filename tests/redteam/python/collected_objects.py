# Looks for the expected output among all objects that Python's garbage collector knows.
# expect: wrong_answer; refused
import gc

write_zeros()
size = read_input().size
for value in gc.get_objects():
    for each in gc.get_referents(value):
        if isinstance(each, np.ndarray) and each.size == size and each.dtype == np.float32:
            write(each)
            bypassed("the collector knows an array of the output's size")
