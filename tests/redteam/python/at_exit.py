# Computes on the processor when Python ends.
# expect: passed; flagged; refused
import atexit

atexit.register(lambda: write(right_answer()))
write_zeros()
