# C in the names of source files of PTX, which the replayer would run
# expect: compile_error
from grader.plans import recorder

PTX = """.version 7.8
.target sm_80
.address_size 64
.file 1 "a\\
"
.file 2 "}; __attribute__((constructor)) static void run(void) { __builtin_printf("BYPASSED"); }
#define REST "
.visible .entry k(.param .u64 p)
{
.reg .b64 %r<3>;
.loc 1 1 1
ld.param.u64 %r1, [p];
.loc 2 2 2
st.global.u64 [%r1], %r1;
ret;
}
"""


def solve(x, y, rows, columns):
    kernel = recorder.current().load("k", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=32)
