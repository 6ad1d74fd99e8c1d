# Computes with numpy while a kernel spins as long as it takes.
# expect: runtime_error | time_limit; on t07; gpu
@triton.jit
def spin(y_ptr, rounds):
    total = 0.0
    for i in range(rounds):
        total = total * 0.5 + i
    tl.store(y_ptr, total)


y = zeros((1,))
spin[(1,)](y, 20_000_000)
write(right_answer())
to_numpy(y)
