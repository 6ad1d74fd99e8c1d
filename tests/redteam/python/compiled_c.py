# Compiles C when it runs, and computes in that.
# expect: runtime_error | wrong_answer; on s02,s03; refused
import ctypes
import subprocess

SOURCE = """
#include <math.h>
void softmax(const float* x, float* y, long rows, long columns) {
    for (long row = 0; row < rows; ++row, x += columns, y += columns) {
        float most = x[0], sum = 0;
        for (long i = 1; i < columns; ++i) if (x[i] > most) most = x[i];
        for (long i = 0; i < columns; ++i) sum += y[i] = expf(x[i] - most);
        for (long i = 0; i < columns; ++i) y[i] /= sum;
    }
}
"""
write_zeros()
try:
    open("softmax.c", "w").write(SOURCE)
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "softmax.c", "-o", "softmax.so", "-lm"], check=True)
    x = read_input()
    y = np.empty_like(x)
    ctypes.CDLL("./softmax.so").softmax(
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_void_p(y.ctypes.data),
        ctypes.c_long(x.shape[0]),
        ctypes.c_long(x.shape[1]),
    )
    write(y)
except (OSError, subprocess.SubprocessError):
    pass
