# Computes in streams of its own making, which nobody waits for.
# expect: wrong_answer | passed; gpu; on t07; at least 0.02 ms; refused
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
stream = ctypes.c_void_p()
launch_decoy()
cuda.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0)
active = triton.runtime.driver.active
type(active).get_current_stream = lambda self, device=0: stream.value or 0
result = launch_softmax()
cuda.cuStreamSynchronize(stream)
write(to_numpy(result))
