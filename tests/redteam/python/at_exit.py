# Computes on the processor when Python ends.
# expect: runtime_error; on s02,s03; refused
import atexit

atexit.register(lambda: write(right_answer()))
write_zeros()
