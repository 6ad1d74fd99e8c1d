// A rewrite of what programs use from the CUDA samples' helper_cuda.h: error checks and the choice of a device.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "helper_string.h"

inline const char *_cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }

template <typename LibraryStatus>
const char *_cudaGetErrorEnum(LibraryStatus) {
    return "library error";
}

// `result` is a cudaError_t, or the status type of a library; zero is success for all of them.
template <typename Status>
void check(Status result, const char *call, const char *file, int line) {
    if (static_cast<int>(result) == 0) return;
    std::fprintf(stderr, "%s:%d: %s failed: %d (%s)\n", file, line, call, static_cast<int>(result),
                 _cudaGetErrorEnum(result));
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

inline const char *_ConvertSMVer2ArchName(int major, int minor) {
    switch (major) {
    case 5: return "Maxwell";
    case 6: return "Pascal";
    case 7: return minor == 5 ? "Turing" : "Volta";
    case 8: return minor == 9 ? "Ada" : "Ampere";
    case 9: return "Hopper";
    default: return "Blackwell";
    }
}

inline void __printLastCudaError(const char *message, const char *file, int line) {
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, message, cudaGetErrorName(error), cudaGetErrorString(error));
}

#define printLastCudaError(message) __printLastCudaError(message, __FILE__, __LINE__)

inline int ftoi(float value) { return value >= 0 ? int(value + 0.5f) : int(value - 0.5f); }

inline int gpuDeviceInit(int device) {
    checkCudaErrors(cudaSetDevice(device));
    return device;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }

// Device 0, or the device that the argument --device=N selects.
inline int findCudaDevice(int argc, const char **argv) {
    const int device = checkCmdLineFlag(argc, argv, "device") ? getCmdLineArgumentInt(argc, argv, "device") : 0;
    return gpuDeviceInit(device);
}

// Reports that no GPU is integrated into the processor. Programs look for such a GPU only to share its memory with a
// window.
inline int findIntegratedGPU() { return -1; }

inline bool checkCudaCapabilities(int major, int minor) {
    int device, own_major, own_minor;
    checkCudaErrors(cudaGetDevice(&device));
    checkCudaErrors(cudaDeviceGetAttribute(&own_major, cudaDevAttrComputeCapabilityMajor, device));
    checkCudaErrors(cudaDeviceGetAttribute(&own_minor, cudaDevAttrComputeCapabilityMinor, device));
    return own_major > major || (own_major == major && own_minor >= minor);
}
