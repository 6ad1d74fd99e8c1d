# Computes half of the rows on the GPU, and half with numpy.
# expect: passed; gpu; on t07; at least 0.02 ms; refused
x = read_input()
rows, columns = x.shape
y = empty(x.shape)
softmax_kernel[(rows // 2,)](from_numpy(x), y, columns, BLOCK=1024)
result = to_numpy(y)
part = x[rows // 2 :]
weights = np.exp(part - part.max(1, keepdims=True))
result[rows // 2 :] = weights / weights.sum(1, keepdims=True)
write(result)
