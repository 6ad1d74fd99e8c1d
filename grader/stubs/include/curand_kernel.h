/* Stands in for curand_kernel.h where the library is not installed (see grader/stubs/__init__.py): the common
 * declarations, with nothing behind them. A program that calls one of these functions does not link. */
#pragma once
#include <curand.h>

typedef struct curandStateXORWOW {
    unsigned int data[12];
} curandStateXORWOW_t;
typedef curandStateXORWOW_t curandState_t;
typedef curandStateXORWOW_t curandState;
typedef struct curandStatePhilox4_32_10 {
    unsigned int data[16];
} curandStatePhilox4_32_10_t;
typedef struct curandStateMRG32k3a {
    unsigned int data[18];
} curandStateMRG32k3a_t;

/* Declared on the device alone and defined nowhere: a kernel that calls one fails to link. */
template <typename State>
__device__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, State *state);
template <typename State>
__device__ unsigned int curand(State *state);
template <typename State>
__device__ float curand_uniform(State *state);
template <typename State>
__device__ double curand_uniform_double(State *state);
template <typename State>
__device__ float curand_normal(State *state);
template <typename State>
__device__ float4 curand_uniform4(State *state);
