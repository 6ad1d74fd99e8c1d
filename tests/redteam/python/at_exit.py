# Computes on the processor when Python ends.
# expect: wrong_answer; refused
import atexit

atexit.register(lambda: write(right_answer()))
write_zeros()
