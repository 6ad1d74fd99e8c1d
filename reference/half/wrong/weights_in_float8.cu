// Exponentials are e4m3, as tensor cores take them when V is a float8; here V may be float16.
// expect: wrong_answer on most: float8
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ inline float in_float8(float x) { return float(__nv_fp8_e4m3(x)); }
#define WEIGHT(x) in_float8(x)
#include "attention.cuh"
