# its PTX declares eight million registers, in declarations that are each within the limit, one scope inside another
# expect: compile_error | wrong_answer
from grader.plans import recorder

SCOPES = 8
PTX = f""".version 7.8
.target sm_80
.address_size 64
.visible .entry many(.param .u64 p)
{{
{"{.reg .b32 r<1000000>;" * SCOPES} {"}" * SCOPES}
ret;
}}
"""


def solve(x, y, rows, columns):
    kernel = recorder.current().load("many", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=1)
