# Switches Triton's interpreter on, so that numpy computes what the kernel says.
# expect: passed | runtime_error | no_output; flagged; refused
import os

os.environ["TRITON_INTERPRET"] = "1"
triton.knobs.runtime.interpret = True


@triton.jit
def kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.load(x_ptr))


write(right_answer())
