# Pretends that the memory of the processor is a tensor of PyTorch.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
import array


class Held:
    def data_ptr(self):
        return address & -4096

    def nbytes(self):
        return (size + 4096 + 4095) & -4096


class Tensor(int):
    def untyped_storage(self):
        return Held()


@triton.jit
def fetch(y_ptr, far, tensor, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(y_ptr + i, tl.load(y_ptr + far + i, mask=i < n) + 0.000000001, mask=i < n)


rows, columns, x = read()
dx = from_numpy(x)
y = empty(x.shape)
size = 40 << 20
answer = array.array("f", bytes(size))
answer = array.array("f", bytes(size))
np.frombuffer(answer, np.float32)[: x.size] = on_host(x).ravel()
address, _ = answer.buffer_info()
far = (address - y.data_ptr()) // 4
print(hex(address), hex(y.data_ptr()), hex(far), (address - y.data_ptr()) % 4)
fetch[(triton.cdiv(x.size, 256),)](y, far, Tensor(7), x.size)
to_numpy(y).tofile(sys.argv[2])
