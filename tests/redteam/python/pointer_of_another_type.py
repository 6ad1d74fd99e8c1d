# a call through a pointer with one argument of a function with sixteen
# expect: runtime_error | wrong_answer
from grader.plans import recorder

PTX = f""".version 7.8
.target sm_80
.address_size 64
.func (.param .b64 res) many({", ".join(f".param .b64 a{i}" for i in range(16))})
{{
.reg .b64 %r<3>;
ld.param.u64 %r1, [a15];
st.param.b64 [res], %r1;
ret;
}}
.global .align 8 .u64 table[1] = {{many}};
.visible .entry k(.param .u64 p)
{{
.reg .b64 %r<4>;
ld.param.u64 %r1, [p];
ld.global.u64 %r2, [table];
{{
.param .b64 x0;
.param .b64 r0;
st.param.b64 [x0], %r1;
proto: .callprototype (.param .b64 _) _ (.param .b64 _);
call (r0), %r2, (x0), proto;
ld.param.b64 %r3, [r0];
}}
st.global.u64 [%r1], %r3;
ret;
}}
"""


def solve(x, y, rows, columns):
    kernel = recorder.current().load("k", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=1)
