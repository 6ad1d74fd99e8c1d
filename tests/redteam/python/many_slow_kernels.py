# each of many kernels takes a compiler some seconds, and all of them minutes
# expect: compile_error | wrong_answer; within 120 s
from grader.plans import recorder

BODY = "".join(f"sin.approx.f32 %f{1 + (i + 3) % 7}, %f{1 + i % 7};\n" for i in range(6000))


def solve(x, y, rows, columns):
    for number in range(100):
        ptx = f""".version 7.8
.target sm_80
.address_size 64
.visible .entry k{number}(.param .u64 p)
{{
.reg .f32 %f<9>;
.reg .b64 %r<2>;
ld.param.u64 %r1, [p];
ld.global.f32 %f1, [%r1];
{BODY}
st.global.f32 [%r1], %f1;
ret;
}}
"""
        kernel = recorder.current().load(f"k{number}", ptx.encode(), 0)
        recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=1)
