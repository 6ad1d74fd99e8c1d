/* Stands in for cuRAND's device library where curand_kernel.h is not installed (see grader/programs/stubs/__init__.py).
 * Programs can declare the generators' states. A kernel that calls one of the functions does not link, and the namespace
 * in the linker's message tells the grader why. */
#pragma once
#include <cuda_runtime_api.h>

typedef struct curandStateXORWOW { unsigned int data[12]; } curandStateXORWOW_t;
typedef curandStateXORWOW_t curandState_t;
typedef curandStateXORWOW_t curandState;
typedef struct alignas(16) curandStatePhilox4_32_10 { unsigned int data[16]; } curandStatePhilox4_32_10_t;
typedef struct curandStateMRG32k3a { unsigned int data[18]; } curandStateMRG32k3a_t;
typedef struct curandStateMtgp32 { unsigned int data[1032]; } curandStateMtgp32_t;
typedef struct curandStateSobol32 { unsigned int data[35]; } curandStateSobol32_t;
typedef struct curandStateScrambledSobol32 { unsigned int data[35]; } curandStateScrambledSobol32_t;
typedef struct alignas(8) curandStateSobol64 { unsigned int data[132]; } curandStateSobol64_t;
typedef struct alignas(8) curandStateScrambledSobol64 { unsigned int data[132]; } curandStateScrambledSobol64_t;

inline namespace grader_lacks_curand {
#define GRADER_LACKS(type, name) template <typename... Arguments> __device__ type name(Arguments...)
GRADER_LACKS(void, curand_init);
GRADER_LACKS(void, skipahead);
GRADER_LACKS(void, skipahead_sequence);
GRADER_LACKS(void, skipahead_subsequence);
GRADER_LACKS(unsigned int, curand);
GRADER_LACKS(uint4, curand4);
GRADER_LACKS(unsigned int, curand_poisson);
GRADER_LACKS(uint4, curand_poisson4);
GRADER_LACKS(unsigned int, curand_discrete);
GRADER_LACKS(float, curand_uniform);
GRADER_LACKS(float4, curand_uniform4);
GRADER_LACKS(double, curand_uniform_double);
GRADER_LACKS(double2, curand_uniform2_double);
GRADER_LACKS(float, curand_normal);
GRADER_LACKS(float2, curand_normal2);
GRADER_LACKS(float4, curand_normal4);
GRADER_LACKS(double, curand_normal_double);
GRADER_LACKS(double2, curand_normal2_double);
GRADER_LACKS(float, curand_log_normal);
GRADER_LACKS(float2, curand_log_normal2);
GRADER_LACKS(float4, curand_log_normal4);
GRADER_LACKS(double, curand_log_normal_double);
GRADER_LACKS(double2, curand_log_normal2_double);
#undef GRADER_LACKS
}
