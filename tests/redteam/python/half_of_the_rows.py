# Computes half of the rows on the GPU, and half with numpy's operators.
# expect: runtime_error; on s03,s08
x = read_input()
rows, columns = x.shape
y = empty(x.shape)
softmax_kernel[(rows // 2,)](from_numpy(x), y, columns, BLOCK=1024)
result = to_numpy(y)
part = to_numpy(from_numpy(x))[rows // 2 :]
weights = 2.718281828459045 ** (part - part.max(1, keepdims=True))
result[rows // 2 :] = weights / weights.sum(1, keepdims=True)
write(result)
