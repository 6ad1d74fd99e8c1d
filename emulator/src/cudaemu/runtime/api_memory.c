/* Allocation, memory pools, and pointer attributes. */

#include "emu.h"
#include <stdlib.h>

static cudaError_t allocate(const char *function, void **out, size_t bytes, enum memory_kind kind) {
    if (!out) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    if (surface_fault()) return (cudaError_t)api_result(function, sticky_error);
    *out = NULL;
    if (bytes == 0) return (cudaError_t)api_result(function, cudaSuccess);
    struct allocation *a = memory_allocate(bytes, 512, kind, function);
    if (!a) return (cudaError_t)api_error(function, cudaErrorMemoryAllocation, "out_of_memory", "bytes=%zu", bytes);
    *out = (void *)a->start;
    return (cudaError_t)api_result(function, cudaSuccess);
}
cudaError_t cudaMalloc(void **p, size_t n) { HOST_CALL(); return allocate(__func__, p, n, MEMORY_DEVICE); }
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned flags) {
    HOST_CALL();
    (void)flags;
    if (n == 0) return API(cudaErrorInvalidValue);
    return allocate(__func__, p, n, MEMORY_MANAGED);
}
cudaError_t cudaMallocHost(void **p, size_t n) { HOST_CALL(); return allocate(__func__, p, n, MEMORY_PINNED); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags) { HOST_CALL(); (void)flags; return allocate(__func__, p, n, MEMORY_PINNED); }
cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height) {
    HOST_CALL();
    *pitch = (width + 511) & ~511ull;
    return allocate(__func__, p, *pitch * height, MEMORY_DEVICE);
}
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent e) {
    HOST_CALL();
    p->pitch = (e.width + 511) & ~511ull, p->xsize = e.width, p->ysize = e.height;
    return allocate(__func__, &p->ptr, p->pitch * e.height * e.depth, MEMORY_DEVICE);
}
cudaError_t cudaFree(void *p) {
    HOST_CALL();
    work_wait(NULL, 0); /* running work may still use it */
    if (surface_fault()) return API(sticky_error);
    return API(memory_free((u64)p, MEMORY_DEVICE, __func__));
}
cudaError_t cudaFreeHost(void *p) { HOST_CALL(); work_wait(NULL, 0); return API(memory_free((u64)p, MEMORY_PINNED, __func__)); }

struct free_work { struct work work; void *p; };
static int run_free(struct work *w) {
    memory_free((u64)((struct free_work *)w)->p, MEMORY_DEVICE, "cudaFreeAsync");
    return 1;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) {
    HOST_CALL();
    struct allocation *a = memory_find((u64)p);
    if (!p || !a) return API(memory_free((u64)p, MEMORY_DEVICE, __func__));
    int captured = capture_alloc(s, p, 1);
    if (captured >= 0) return API(captured);
    struct free_work w = {.work = {.stream = stream_of(s), .run = run_free}, .p = p};
    work_submit(&w.work, sizeof w);
    return API(cudaSuccess);
}
cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags) {
    (void)flags;
    struct allocation *a = memory_find((u64)p);
    if (a) return API(cudaErrorHostMemoryAlreadyRegistered);
    memory_adopt(p, n, MEMORY_REGISTERED, __func__);
    return API(cudaSuccess);
}
cudaError_t cudaHostUnregister(void *p) {
    work_wait(NULL, 0);
    struct allocation *a = memory_find((u64)p);
    if (!a || a->kind != MEMORY_REGISTERED) return API(cudaErrorHostMemoryNotRegistered);
    return API(memory_free((u64)p, MEMORY_REGISTERED, __func__));
}
cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned flags) {
    (void)flags;
    if (!memory_find((u64)host)) return API(cudaErrorInvalidValue);
    *out = host;
    return API(cudaSuccess);
}
cudaError_t cudaHostGetFlags(unsigned *flags, void *host) { (void)host; *flags = 0; return API(cudaSuccess); }
cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    if (available) *available = DEVICE_MEMORY_BYTES - memory_used();
    if (total) *total = DEVICE_MEMORY_BYTES;
    return API(cudaSuccess);
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
    memset(a, 0, sizeof *a);
    struct allocation *found = memory_find((u64)p);
    if (!found) {
        a->type = cudaMemoryTypeUnregistered, a->hostPointer = (void *)p, a->device = -2;
        return API(cudaSuccess);
    }
    int host = found->kind == MEMORY_PINNED || found->kind == MEMORY_REGISTERED, managed = found->kind == MEMORY_MANAGED;
    a->type = host ? cudaMemoryTypeHost : managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
    a->devicePointer = (void *)p;
    a->hostPointer = host || managed ? (void *)p : NULL;
    return API(cudaSuccess);
}

/* ---- managed memory -------------------------------------------------------------------------------------------------- */

/* Host and device share managed memory. Advice and prefetches have no effect; cudaMemRangeGetAttribute returns them. */
struct advice { u64 start, end; int read_mostly, preferred, prefetched; };
static struct advice *advices;
static u32 advice_count;
#define NOWHERE cudaInvalidDeviceId

static int is_managed(const void *p, size_t n) {
    struct allocation *a = memory_find((u64)p);
    return a && (u64)p + n <= a->start + a->size && (a->kind == MEMORY_MANAGED || a->kind == MEMORY_VARIABLE);
}
static struct advice *advice_for(const void *p, size_t n) {
    for (u32 i = 0; i < advice_count; i++)
        if (advices[i].start == (u64)p && advices[i].end == (u64)p + n) return &advices[i];
    advices = realloc(advices, (advice_count + 1) * sizeof *advices);
    advices[advice_count] = (struct advice){(u64)p, (u64)p + n, 0, NOWHERE, NOWHERE};
    return &advices[advice_count++];
}
static int place_number(struct cudaMemLocation where) { return where.type == cudaMemLocationTypeDevice ? where.id : cudaCpuDeviceId; }
static int is_place(struct cudaMemLocation where) { return where.type != cudaMemLocationTypeInvalid && (where.type != cudaMemLocationTypeDevice || where.id == 0); }

cudaError_t cudaMemAdvise(const void *p, size_t n, enum cudaMemoryAdvise what, struct cudaMemLocation where) {
    if (!n || !is_managed(p, n)) return API(cudaErrorInvalidValue);
    struct advice *a = advice_for(p, n);
    switch (what) {
    case cudaMemAdviseSetReadMostly: a->read_mostly = 1; break;
    case cudaMemAdviseUnsetReadMostly: a->read_mostly = 0; break;
    case cudaMemAdviseSetPreferredLocation:
        if (!is_place(where)) return API(cudaErrorInvalidDevice);
        a->preferred = place_number(where);
        break;
    case cudaMemAdviseUnsetPreferredLocation: a->preferred = NOWHERE; break;
    default: break;
    }
    return API(cudaSuccess);
}
cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, struct cudaMemLocation where, unsigned flags, cudaStream_t s) {
    (void)s;
    if (!n || flags || !is_managed(p, n)) return API(cudaErrorInvalidValue);
    if (!is_place(where)) return API(cudaErrorInvalidDevice);
    advice_for(p, n)->prefetched = place_number(where);
    return API(cudaSuccess);
}
cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute what, const void *p, size_t n) {
    if (size < 4 || !is_managed(p, n)) return API(cudaErrorInvalidValue);
    const struct advice *a = advice_for(p, n);
    int *value = data;
    switch (what) {
    case cudaMemRangeAttributeReadMostly: *value = a->read_mostly; break;
    case cudaMemRangeAttributePreferredLocation: *value = a->preferred; break;
    case cudaMemRangeAttributeLastPrefetchLocation: *value = a->prefetched; break;
    case cudaMemRangeAttributeAccessedBy:
        for (size_t i = 0; i < size / 4; i++) value[i] = NOWHERE;
        break;
    default: return API(cudaErrorNotSupported);
    }
    return API(cudaSuccess);
}
cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes, enum cudaMemRangeAttribute *what, size_t count, const void *p, size_t n) {
    for (size_t i = 0; i < count; i++) {
        cudaError_t e = cudaMemRangeGetAttribute(data[i], sizes[i], what[i], p, n);
        if (e) return e;
    }
    return API(cudaSuccess);
}

/* ---- pools ----------------------------------------------------------------------------------------------------------- */

/* A pool is only a table of attributes: it allocates like cudaMalloc, and returns freed memory immediately. */
struct pool { u64 values[16]; };
static struct pool default_pool, *device_pool = &default_pool;

/* The call itself allocates; the stream matters only if it captures a graph. */
cudaError_t cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t pool, cudaStream_t s) {
    HOST_CALL();
    if (!pool) return API(cudaErrorInvalidValue);
    cudaError_t e = allocate("cudaMallocFromPoolAsync", p, n, MEMORY_DEVICE);
    if (!e && *p) capture_alloc(s, *p, 0);
    return e;
}
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) {
    HOST_CALL();
    cudaError_t e = allocate(__func__, p, n, MEMORY_DEVICE);
    if (!e && *p) capture_alloc(s, *p, 0);
    return e;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) {
    if (!pool || !properties || properties->allocType != cudaMemAllocationTypePinned || !is_place(properties->location)) return API(cudaErrorInvalidValue);
    if (properties->handleTypes != cudaMemHandleTypeNone) return API(cudaErrorNotSupported);
    struct pool *made = calloc(1, sizeof *made);
    for (int i = cudaMemPoolReuseFollowEventDependencies; i <= cudaMemPoolReuseAllowInternalDependencies; i++) made->values[i] = 1;
    *pool = (cudaMemPool_t)made;
    return API(cudaSuccess);
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    if (!pool || (struct pool *)pool == &default_pool) return API(cudaErrorInvalidValue);
    if (device_pool == (struct pool *)pool) device_pool = &default_pool;
    free(pool);
    return API(cudaSuccess);
}
static int is_wide(enum cudaMemPoolAttr a) { return a >= cudaMemPoolAttrReleaseThreshold; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value) {
    if (!pool || (unsigned)a - 1 >= 15) return API(cudaErrorInvalidValue);
    ((struct pool *)pool)->values[a] = is_wide(a) ? *(u64 *)value : *(u32 *)value;
    return API(cudaSuccess);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value) {
    if (!pool || (unsigned)a - 1 >= 15) return API(cudaErrorInvalidValue);
    u64 v = ((struct pool *)pool)->values[a];
    if (a == cudaMemPoolAttrUsedMemCurrent || a == cudaMemPoolAttrReservedMemCurrent) v = memory_used();
    if (is_wide(a)) *(u64 *)value = v;
    else *(u32 *)value = (u32)v;
    return API(cudaSuccess);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!is_place(list[i].location)) return API(cudaErrorInvalidDevice);
    return API(pool ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *where) {
    if (!pool || !is_place(*where)) return API(cudaErrorInvalidValue);
    *flags = cudaMemAccessFlagsProtReadWrite;
    return API(cudaSuccess);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t n) { (void)n; return API(pool ? cudaSuccess : cudaErrorInvalidValue); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) { *pool = (cudaMemPool_t)&default_pool; return API(device ? cudaErrorInvalidDevice : cudaSuccess); }
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { *pool = (cudaMemPool_t)device_pool; return API(device ? cudaErrorInvalidDevice : cudaSuccess); }
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    if (device || !pool) return API(cudaErrorInvalidValue);
    device_pool = (struct pool *)pool;
    return API(cudaSuccess);
}
static int is_default_kind(const struct cudaMemLocation *where, enum cudaMemAllocationType type) { return where && is_place(*where) && where->type == cudaMemLocationTypeDevice && type == cudaMemAllocationTypePinned; }
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where, enum cudaMemAllocationType type) { return is_default_kind(where, type) ? cudaDeviceGetDefaultMemPool(pool, 0) : API(cudaErrorNotSupported); }
cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where, enum cudaMemAllocationType type) { return is_default_kind(where, type) ? cudaDeviceGetMemPool(pool, 0) : API(cudaErrorNotSupported); }
cudaError_t cudaMemSetMemPool(struct cudaMemLocation *where, enum cudaMemAllocationType type, cudaMemPool_t pool) { return is_default_kind(where, type) ? cudaDeviceSetMemPool(0, pool) : API(cudaErrorNotSupported); }
