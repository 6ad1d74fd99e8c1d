# Links a file of machine code that it names into its kernel.
# expect: wrong_answer | runtime_error | no_output | grader_error; refused
from triton.language import core

write_zeros()


@core.extern
def other(x, _semantic=None):
    return core.extern_elementwise(
        "other",
        "/tmp/redteam-canary/secret",
        [x],
        {(core.dtype("fp32"),): ("other", core.dtype("fp32"))},
        True,
        _semantic=_semantic,
    )


@triton.jit
def kernel(y_ptr):
    tl.store(y_ptr, other(1.0))


kernel[(1,)](zeros((4,)))
