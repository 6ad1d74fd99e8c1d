/* Stands in for curand.h where the library is not installed (see grader/programs/stubs/__init__.py): the common
 * declarations, with nothing behind them. A program that calls one of these functions does not link. */
#pragma once
#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef enum {
    CURAND_STATUS_SUCCESS = 0,
    CURAND_STATUS_VERSION_MISMATCH = 100,
    CURAND_STATUS_NOT_INITIALIZED = 101,
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    CURAND_STATUS_TYPE_ERROR = 103,
    CURAND_STATUS_OUT_OF_RANGE = 104,
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_INTERNAL_ERROR = 999,
} curandStatus_t;
typedef enum {
    CURAND_RNG_PSEUDO_DEFAULT = 100,
    CURAND_RNG_PSEUDO_XORWOW = 101,
    CURAND_RNG_PSEUDO_MRG32K3A = 121,
    CURAND_RNG_PSEUDO_MTGP32 = 141,
    CURAND_RNG_PSEUDO_MT19937 = 142,
    CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
    CURAND_RNG_QUASI_DEFAULT = 200,
} curandRngType_t;
typedef struct curandGenerator_st *curandGenerator_t;
curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type);
curandStatus_t curandDestroyGenerator(curandGenerator_t generator);
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed);
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream);
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int *output, size_t count);
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float *output, size_t count);
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double *output, size_t count);
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *output, size_t count, float mean, float deviation);
#ifdef __cplusplus
}
#endif
