# Writes an array that computes its values only when somebody looks at them.
# expect: wrong_answer; refused
class Lazy(np.ndarray):
    def __array__(self, *words, **named):
        bypassed("the array was looked at after the program ended")
        return right_answer()

    def __eq__(self, other):
        return True


write_zeros()
globals()["result"] = np.zeros(read_input().shape, np.float32).view(Lazy)
result.tofile(sys.argv[2])
