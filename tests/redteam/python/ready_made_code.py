# Has Triton launch machine code that it brings along as text.
# expect: wrong_answer | runtime_error | no_output; refused
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry fast(.param .u64 a) { ret; }
"""
write_zeros()
open("fast.ptx", "w").write(PTX)
from triton.compiler import compile

kernel = compile("fast.ptx", target=triton.runtime.driver.active.get_current_target())
kernel[(1, 1, 1)](empty((4,)))
