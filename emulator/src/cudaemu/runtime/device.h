/* The facts of the emulated GPU: those of one well-known GPU of each architecture. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

struct device_facts {
    const char *name;
    uint32_t architecture; /* 80 for sm_80 */
    uint32_t multiprocessors, threads, blocks, shared, shared_per_block; /* threads, blocks, shared: of one multiprocessor */
    uint32_t l2, bus_bits, clock_khz, memory_clock_khz;
};
extern const struct device_facts *gpu;

#define SHARED_DEFAULT (48u * 1024) /* per block, without cudaFuncAttributeMaxDynamicSharedMemorySize */
#define SHARED_RESERVED 1024u       /* per block, by the system */
#define SHARED_START (gpu->architecture >= 90 ? SHARED_RESERVED : 0) /* the kernel's own begins after the system's (seen on an H200) */
#define HAS_CLUSTERS (gpu->architecture >= 90)

#endif
