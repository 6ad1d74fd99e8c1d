#pragma once
extern __constant__ int kept_n;
__device__ void row_of_32(const float* input, float* output, size_t row);
__device__ void row_of_64(const float* input, float* output, size_t row);
