// Theoretical occupancy, by the toolkit's own cuda_occupancy.h, as a C function for Python's ctypes.
//
// Theory of operation
//
//   NVIDIA ships its occupancy calculator as a header without dependencies: given the limits of an SM and the resources
//   of a kernel, it computes how many blocks fit. It knows rounding rules that change between architectures (registers
//   are allocated per warp in units of 256, shared memory in 128 or 256 bytes plus the system's reserve). This file
//   only passes numbers to it, instead of repeating these rules. It makes no CUDA call and needs no GPU.
//
//   The split between L1 and shared memory is the driver's default, as for a kernel that does not choose one.

#include <cuda_occupancy.h>

extern "C" {

// limits: major, minor, threads per block, threads per SM, registers per block, registers per SM, warp size, shared
//         bytes per block, per SM, per block with opt-in, reserved per block
// kernel: registers per thread, static shared bytes, threads per block, dynamic shared bytes
// result: blocks per SM; the blocks that each resource alone allows: registers, shared memory, warps, blocks; limiting
//         factors
// Returns the header's error code, 0 for success.
__attribute__((visibility("default"))) int grader_occupancy(const long long* limits, const long long* kernel,
                                                             long long* result) {
    cudaOccDeviceProp device;
    device.computeMajor = int(limits[0]);
    device.computeMinor = int(limits[1]);
    device.maxThreadsPerBlock = int(limits[2]);
    device.maxThreadsPerMultiprocessor = int(limits[3]);
    device.regsPerBlock = int(limits[4]);
    device.regsPerMultiprocessor = int(limits[5]);
    device.warpSize = int(limits[6]);
    device.sharedMemPerBlock = size_t(limits[7]);
    device.sharedMemPerMultiprocessor = size_t(limits[8]);
    device.sharedMemPerBlockOptin = size_t(limits[9]);
    device.reservedSharedMemPerBlock = size_t(limits[10]);
    device.numSms = 1;

    cudaOccFuncAttributes function;
    function.maxThreadsPerBlock = device.maxThreadsPerBlock;
    function.numRegs = int(kernel[0]);
    function.sharedSizeBytes = size_t(kernel[1]);
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = size_t(kernel[3]);
    function.numBlockBarriers = 1;

    const cudaOccDeviceState state;
    cudaOccResult found;
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&found, &device, &function, &state,
                                                                       int(kernel[2]), size_t(kernel[3]));
    if (error != CUDA_OCC_SUCCESS) return int(error);
    result[0] = found.activeBlocksPerMultiprocessor;
    result[1] = found.blockLimitRegs;
    result[2] = found.blockLimitSharedMem;
    result[3] = found.blockLimitWarps;
    result[4] = found.blockLimitBlocks;
    result[5] = found.limitingFactors;
    return 0;
}
}
