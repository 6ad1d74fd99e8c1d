// What homework uses of the CUDA samples' helper_cuda.h, written anew: error checks and the choice of a device.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "helper_string.h"

inline const char *_cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }

inline void check(cudaError_t result, const char *call, const char *file, int line) {
    if (result == cudaSuccess) return;
    std::fprintf(stderr, "%s:%d: %s failed: %s (%s)\n", file, line, call, cudaGetErrorName(result), cudaGetErrorString(result));
    std::exit(EXIT_FAILURE);
}

inline void __getLastCudaError(const char *message, const char *file, int line) {
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, message, cudaGetErrorName(error), cudaGetErrorString(error));
    std::exit(EXIT_FAILURE);
}

#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)

#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

// CUDA cores per multiprocessor, by compute capability (CUDA programming guide, arithmetic throughput, 32-bit add).
inline int _ConvertSMVer2Cores(int major, int minor) {
    if (major == 6) return minor == 0 ? 64 : 128;
    if (major == 7) return 64;
    if (major == 8) return minor == 0 ? 64 : 128;
    return 128;
}

inline int gpuDeviceInit(int device) {
    checkCudaErrors(cudaSetDevice(device));
    return device;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }

// Device 0, or the one of an argument --device=N.
inline int findCudaDevice(int argc, const char **argv) {
    const int device = checkCmdLineFlag(argc, argv, "device") ? getCmdLineArgumentInt(argc, argv, "device") : 0;
    return gpuDeviceInit(device);
}
