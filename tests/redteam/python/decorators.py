# Has a decorator do the work on the processor while its kernel is defined.
# expect: runtime_error; on s02,s03
def work_first(function):
    write(np.exp(read_input() - read_input().max(1, keepdims=True)))
    values = np.fromfile(sys.argv[2], np.float32).reshape(read_input().shape)
    write(values / values.sum(1, keepdims=True))
    return function


@triton.jit
@work_first
def kernel(y_ptr):
    tl.store(y_ptr, 0.0)
