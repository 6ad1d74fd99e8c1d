# Takes kernels from a library of Triton's own.
# expect: wrong_answer; refused
write_zeros()
for name in ("triton_kernels", "triton_kernels.matmul_ogs", "triton.ops", "triton.ops.matmul"):
    try:
        __import__(name)
        bypassed(f"{name} is installed")
    except ImportError:
        pass
