// What the programs of this folder share: errors, random numbers, tensor maps, clusters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../reference/half/hopper_instructions.cuh"

namespace hopper {

// ---------------------------------------------------------------------------------------------------- clusters

__device__ __forceinline__ int cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// The address of what `pointer` is here, in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ uint32_t address_at(const void* pointer, int rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(pointer)), "r"(rank));
    return remote;
}

// -------------------------------------------------------------------------------------------- copies to memory

// Bulk copies of this thread from shared memory: commit them to a group, wait until all groups have been read, or are done.
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ---------------------------------------------------------------------------------------------------- the host

inline void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
}

// The same numbers in [-1, 1) everywhere.
struct Random {
    unsigned state = 1;
    unsigned bits() { return (state = state * 1664525u + 1013904223u) >> 8; }
    float number() { return float(bits() >> 1) / (1 << 22) - 1.0f; }
};

// A map of a row-major matrix for boxes of box_rows x box_columns, whose rows have as many bytes as the swizzle.
inline CUtensorMap make_map(void* matrix, CUtensorMapDataType type, int element_bytes, int rows, int columns, int box_rows,
                            int box_columns) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    const cuuint64_t row_bytes = cuuint64_t(columns) * element_bytes, all_bytes = row_bytes * rows;
    const cuuint64_t sizes[4] = {cuuint64_t(columns), cuuint64_t(rows), 1, 1}, strides[3] = {row_bytes, all_bytes, all_bytes};
    const cuuint32_t box[4] = {cuuint32_t(box_columns), cuuint32_t(box_rows), 1, 1}, step[4] = {1, 1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        &map, type, 4, matrix, sizes, strides, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
        box_columns * element_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) std::fprintf(stderr, "no tensor map: error %d\n", result), std::exit(1);
    return map;
}

template <class T>
T* to_device(const std::vector<T>& host) {
    T* device;
    check(cudaMalloc(&device, host.size() * sizeof(T)));
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

inline int processors() {
    int count;
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

template <class Launch>
float milliseconds(int repetitions, const Launch& launch) {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin)), check(cudaEventCreate(&end));
    check(cudaEventRecord(begin));
    for (int i = 0; i < repetitions; ++i) launch();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms;
    check(cudaEventElapsedTime(&ms, begin, end));
    return ms / repetitions;
}

}    // namespace hopper
