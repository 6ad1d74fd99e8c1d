/* The old name of NVTX. CUDA 13 has it as nvtx3/nvToolsExt.h, which needs no library; without that header, markers do nothing. */
#pragma once
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
#include <stdint.h>
typedef uint64_t nvtxRangeId_t;
static inline void nvtxMarkA(const char *message) { (void)message; }
static inline int nvtxRangePushA(const char *message) { return (void)message, 0; }
static inline int nvtxRangePop(void) { return 0; }
static inline nvtxRangeId_t nvtxRangeStartA(const char *message) { return (void)message, 0; }
static inline void nvtxRangeEnd(nvtxRangeId_t id) { (void)id; }
static inline void nvtxNameOsThreadA(uint32_t thread, const char *name) { (void)thread, (void)name; }
#define nvtxMark nvtxMarkA
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxNameOsThread nvtxNameOsThreadA
#endif
