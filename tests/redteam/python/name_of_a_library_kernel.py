# Calls a kernel for show like one of cuBLAS, for that to count as its own.
# expect: wrong_answer; refused
@triton.jit
def ampere_sgemm_128x64_nn(y_ptr):
    tl.store(y_ptr, 0.0)


ampere_sgemm_128x64_nn[(1,)](zeros((4,)))
write_zeros()
