"""Tensors for Triton programs, on a GPU and on the emulator, without PyTorch.

    x = from_numpy(values)                      a copy on the device; a second argument gives it another type
    y = empty((rows, columns), "float16")       uninitialised; float32 if no type is given
    kernel[grid](x, y, x.stride(0), ...)
    result = to_numpy(y)                        a copy on the host; bfloat16 becomes float32

Like PyTorch's tensors, they have data_ptr(), dtype, shape, stride(), numel(), reshape(), transpose() and x[i].
"""

from grader.python.arrays import Array, empty, from_numpy, to_numpy, zeros

__all__ = ["Array", "empty", "from_numpy", "to_numpy", "zeros"]
