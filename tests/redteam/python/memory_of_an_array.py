# Gives an array another address, so that a download copies the processor's memory.
# expect: runtime_error | no_output | wrong_answer; on s03
answer = np.ascontiguousarray(right_answer(), np.float32)
y = launch_softmax()
y.storage.address = answer.ctypes.data
write(to_numpy(y))
bypassed("copied from the processor's memory")
