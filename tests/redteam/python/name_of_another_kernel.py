# Gives its kernel the name of one of PyTorch's that fills arrays.
# expect: passed | runtime_error | no_output; refused
@triton.jit
def fill_kernel(y_ptr):
    tl.store(y_ptr, 0.0)


fill_kernel.fn.__name__ = "at_native_FillFunctor"
fill_kernel.__name__ = "at_native_FillFunctor"
fill_kernel[(1,)](zeros((4,)))
write(to_numpy(launch_softmax()))
