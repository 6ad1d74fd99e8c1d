# a kernel prints with %n and with lengths below zero
# expect: wrong_answer | runtime_error
from grader.plans import recorder

TEXT = b"%lln%n%lc%ls%hhn%-1$n\n\0"
PTX = f""".version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 text[{len(TEXT)}] = {{{", ".join(map(str, TEXT))}}};
.visible .entry say(.param .u64 p)
{{
.local .align 8 .b8 values[16];
.reg .b64 %r<4>;
.reg .b32 %t<2>;
mov.u64 %r1, values;
cvta.local.u64 %r1, %r1;
mov.u64 %r2, 0x10;
st.u64 [%r1], %r2;
st.u64 [%r1+8], %r2;
mov.u64 %r3, text;
cvta.global.u64 %r3, %r3;
{{
.param .b64 a;
.param .b64 b;
.param .b32 r;
st.param.b64 [a], %r3;
st.param.b64 [b], %r1;
call (r), vprintf, (a, b);
ld.param.b32 %t1, [r];
}}
ret;
}}
"""


def solve(x, y, rows, columns):
    y.copy_(x)
    y[:1].zero_()
    kernel = recorder.current().load("say", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr()], threads=1)
