"""Tensors for Triton programs, on a GPU and on the emulator, without PyTorch. A program may use PyTorch's instead.

    x = from_numpy(values)                      a copy on the device, of the values' type or of another one
    y = empty((rows, columns), "float16")       of float32, unless you say otherwise
    kernel[grid](x, y, x.stride(0), ...)
    result = to_numpy(y)                        a copy on the host; bfloat16 becomes float32

They have data_ptr(), dtype, shape, stride(), numel(), reshape(), transpose() and x[i], like PyTorch's.
"""

from grader.python.arrays import Array, empty, from_numpy, to_numpy, zeros

__all__ = ["Array", "empty", "from_numpy", "to_numpy", "zeros"]
