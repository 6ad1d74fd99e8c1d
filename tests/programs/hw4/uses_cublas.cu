// Calls a forbidden library, so it must not link.
#include <cublas_v2.h>
#define LAUNCH(input, output, batches, n, d)                                                                       \
    cublasHandle_t handle;                                                                                         \
    const float one = 1.0f, zero = 0.0f;                                                                           \
    cublasCreate(&handle);                                                                                         \
    cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, n, d, &one, input, d, input, d, &zero, output, n)
#include "attention.cuh"
