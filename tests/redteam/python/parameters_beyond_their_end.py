# a function reads and writes behind its parameters, which are rows of the emulator's own memory
# expect: compile_error | wrong_answer
from grader.plans import recorder

PTX = """.version 7.8
.target sm_80
.address_size 64
.visible .entry leak(.param .u64 p)
{
.reg .b64 %r<3>;
ld.param.u64 %r1, [p];
ld.param.u64 %r2, [p+8];
st.global.u64 [%r1], %r2;
ret;
}
"""


def solve(x, y, rows, columns):
    kernel = recorder.current().load("leak", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=1)
