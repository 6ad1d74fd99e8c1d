/* Allocation, copies, sets. Copies run at once, whatever their stream: everything before them has finished. */

#include "emu.h"
#include <stdlib.h>

int stream_number(cudaStream_t s);
int capture_copy(cudaStream_t stream, void *to, u64 to_pitch, const void *from, u64 from_pitch, u64 width, u64 rows);
int capture_set(cudaStream_t stream, void *to, u64 pitch, int value, u64 element, u64 width, u64 rows);

/* ---- allocation ------------------------------------------------------------------------------------------------------ */

static cudaError_t allocate(const char *function, void **out, size_t bytes, enum memory_kind kind) {
    if (!out) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    if (surface_fault()) return (cudaError_t)api_result(function, sticky_error);
    *out = NULL;
    if (bytes == 0) return (cudaError_t)api_result(function, cudaSuccess);
    struct allocation *a = memory_allocate(bytes, 512, kind, function);
    if (!a) return (cudaError_t)api_result(function, cudaErrorMemoryAllocation);
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
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) { HOST_CALL(); (void)s; return allocate(__func__, p, n, MEMORY_DEVICE); }
cudaError_t cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t pool, cudaStream_t s) { HOST_CALL(); (void)s, (void)pool; return allocate(__func__, p, n, MEMORY_DEVICE); }
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
    if (surface_fault()) return API(sticky_error);
    return API(memory_free((u64)p, MEMORY_DEVICE, __func__));
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { HOST_CALL(); (void)s; return API(memory_free((u64)p, MEMORY_DEVICE, __func__)); }
cudaError_t cudaFreeHost(void *p) { HOST_CALL(); return API(memory_free((u64)p, MEMORY_PINNED, __func__)); }
cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags) {
    (void)flags;
    struct allocation *a = memory_find((u64)p);
    if (a) return API(cudaErrorHostMemoryAlreadyRegistered);
    memory_adopt(p, n, MEMORY_REGISTERED, __func__);
    return API(cudaSuccess);
}
cudaError_t cudaHostUnregister(void *p) {
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
cudaError_t cudaMemAdvise(const void *p, size_t n, enum cudaMemoryAdvise advice, struct cudaMemLocation where) { (void)p, (void)n, (void)advice, (void)where; return API(cudaSuccess); }
cudaError_t cudaMemPrefetchAsync(const void *p, size_t n, struct cudaMemLocation where, unsigned flags, cudaStream_t s) {
    (void)p, (void)n, (void)where, (void)flags, (void)s;
    return API(cudaSuccess);
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties) { (void)properties; *pool = (cudaMemPool_t)calloc(1, 64); return API(cudaSuccess); }
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { (void)pool; return API(cudaSuccess); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value) { (void)pool, (void)a, (void)value; return API(cudaSuccess); }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value) { (void)pool, (void)a; *(u64 *)value = 0; return API(cudaSuccess); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t n) { (void)pool, (void)n; return API(cudaSuccess); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) { static u64 the_pool; (void)device; *pool = (cudaMemPool_t)&the_pool; return API(cudaSuccess); }
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) { (void)device, (void)pool; return API(cudaSuccess); }

/* ---- where a pointer leads ---------------------------------------------------------------------------------------------- */

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_BOTH, SIDE_BAD };

/* The host address behind a pointer of a copy. A device pointer must lie in one allocation with all it covers. */
static enum side resolve(const char *function, const void *p, u64 bytes, void **host) {
    struct allocation *a = memory_find((u64)p);
    if (a) {
        *host = (void *)((u64)p + (u64)a->delta);
        if ((u64)p + bytes > a->start + a->size) {
            char text[512];
            memory_describe((u64)p, bytes, text, sizeof text);
            diagnose(NULL, ~0u, 0, "error", "memory", "Check the number of bytes of the copy against what was allocated (bytes, not elements).",
                     "%s: %llu bytes from %s", function, (unsigned long long)bytes, text);
            return SIDE_BAD;
        }
        return a->delta ? SIDE_DEVICE : SIDE_BOTH;
    }
    *host = (void *)p;
    if (memory_is_arena((u64)p)) {
        char text[512];
        memory_describe((u64)p, bytes, text, sizeof text);
        diagnose(NULL, ~0u, 0, "error", "memory", "Use the pointer that the allocation gave, before it is freed.", "%s: %s", function, text);
        return SIDE_BAD;
    }
    return SIDE_HOST;
}

static const char *const DIRECTIONS[] = {"HtoH", "HtoD", "DtoH", "DtoD"};

static cudaError_t copy(const char *function, void *to, u64 to_pitch, const void *from, u64 from_pitch, u64 width, u64 rows, enum cudaMemcpyKind kind,
                        cudaStream_t stream, int synchronous) {
    if (synchronous && surface_fault()) return (cudaError_t)api_result(function, sticky_error);
    if (sticky_error || pending_fault) return (cudaError_t)api_result(function, sticky_error);
    if (width == 0 || rows == 0) return (cudaError_t)api_result(function, cudaSuccess);
    if (rows > 1 && (to_pitch < width || from_pitch < width)) return (cudaError_t)api_result(function, cudaErrorInvalidPitchValue);
    if (!to || !from) return (cudaError_t)api_error(function, cudaErrorInvalidValue, "the %s is a null pointer", to ? "source" : "destination");
    void *t, *f;
    enum side ts = resolve(function, to, (rows - 1) * to_pitch + width, &t), fs = resolve(function, from, (rows - 1) * from_pitch + width, &f);
    if (ts == SIDE_BAD || fs == SIDE_BAD) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    if ((int)kind < 0 || (int)kind > 4) return (cudaError_t)api_result(function, cudaErrorInvalidMemcpyDirection);
    const char *wrong = NULL;
    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && ts == SIDE_HOST) wrong = "the destination is host memory, but the direction says device";
    if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && fs == SIDE_HOST) wrong = "the source is host memory, but the direction says device";
    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) && fs == SIDE_DEVICE) wrong = "the source is device memory, but the direction says host";
    if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) && ts == SIDE_DEVICE) wrong = "the destination is device memory, but the direction says host";
    if (wrong) return (cudaError_t)api_error(function, cudaErrorInvalidValue, "%s", wrong);
    int captured = capture_copy(stream, to, to_pitch, from, from_pitch, width, rows);
    if (captured >= 0) return (cudaError_t)api_result(function, captured);
    u64 start = now_ns();
    if (rows == 1 || (to_pitch == width && from_pitch == width)) memmove(t, f, width * rows);
    else
        for (u64 r = 0; r < rows; r++) memmove((u8 *)t + r * to_pitch, (u8 *)f + r * from_pitch, width);
    for (u64 r = 0; shadow_checks && r < rows; r++) written_copy(function, (u8 *)to + r * to_pitch, (const u8 *)from + r * from_pitch, width);
    int d = kind == cudaMemcpyDefault ? (fs == SIDE_HOST ? 0 : 2) + (ts == SIDE_HOST ? 0 : 1) : kind == cudaMemcpyHostToDevice ? 1 : kind == cudaMemcpyDeviceToHost ? 2 : kind == cudaMemcpyDeviceToDevice ? 3 : 0;
    trace_line("{\"kind\":\"memcpy\",\"direction\":\"%s\",\"bytes\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"stream\":%d}", DIRECTIONS[d],
               (unsigned long long)(width * rows), (unsigned long long)start, (unsigned long long)now_ns(), stream_number(stream));
    return (cudaError_t)api_result(function, cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, n, from, n, n, 1, kind, 0, 1); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, n, from, n, n, 1, kind, s, 0); }
cudaError_t cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, tp, from, fp, w, h, kind, 0, 1); }
cudaError_t cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, tp, from, fp, w, h, kind, s, 0); }
cudaError_t cudaMemcpyPeer(void *to, int td, const void *from, int fd, size_t n) { HOST_CALL(); (void)td, (void)fd; return copy(__func__, to, n, from, n, n, 1, cudaMemcpyDeviceToDevice, 0, 1); }
cudaError_t cudaMemcpyPeerAsync(void *to, int td, const void *from, int fd, size_t n, cudaStream_t s) { HOST_CALL(); (void)td, (void)fd; return copy(__func__, to, n, from, n, n, 1, cudaMemcpyDeviceToDevice, s, 0); }
static cudaError_t copy3d(const char *function, const struct cudaMemcpy3DParms *p, cudaStream_t s, int synchronous) {
    if (p->srcArray || p->dstArray) return (cudaError_t)api_error(function, cudaErrorNotSupported, "CUDA arrays are not supported by the emulator; use linear memory");
    for (size_t z = 0; z < p->extent.depth; z++) {
        u8 *to = (u8 *)p->dstPtr.ptr + (p->dstPos.z + z) * p->dstPtr.pitch * p->dstPtr.ysize + p->dstPos.y * p->dstPtr.pitch + p->dstPos.x;
        const u8 *from = (const u8 *)p->srcPtr.ptr + (p->srcPos.z + z) * p->srcPtr.pitch * p->srcPtr.ysize + p->srcPos.y * p->srcPtr.pitch + p->srcPos.x;
        cudaError_t e = copy(function, to, p->dstPtr.pitch, from, p->srcPtr.pitch, p->extent.width, p->extent.height, p->kind, s, synchronous);
        if (e) return e;
    }
    return cudaSuccess;
}
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { HOST_CALL(); return copy3d(__func__, p, 0, 1); }
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) { HOST_CALL(); return copy3d(__func__, p, s, 0); }

static cudaError_t set(const char *function, void *to, u64 pitch, int value, u64 width, u64 rows, cudaStream_t stream) {
    if (sticky_error || pending_fault) return (cudaError_t)api_result(function, sticky_error);
    if (width == 0 || rows == 0) return (cudaError_t)api_result(function, cudaSuccess);
    void *t;
    enum side side = resolve(function, to, (rows - 1) * pitch + width, &t);
    if (side == SIDE_HOST)
        return (cudaError_t)api_error(function, cudaErrorInvalidValue, "the pointer is host memory (or null), not device memory");
    if (side == SIDE_BAD) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    int captured = capture_set(stream, to, pitch, value, 1, width, rows);
    if (captured >= 0) return (cudaError_t)api_result(function, captured);
    u64 start = now_ns();
    for (u64 r = 0; r < rows; r++) {
        memset((u8 *)t + r * pitch, value, width);
        if (shadow_checks) written_by_host((u8 *)to + r * pitch, width);
    }
    trace_line("{\"kind\":\"memset\",\"bytes\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"stream\":%d}", (unsigned long long)(width * rows), (unsigned long long)start,
               (unsigned long long)now_ns(), stream_number(stream));
    return (cudaError_t)api_result(function, cudaSuccess);
}
cudaError_t cudaMemset(void *p, int v, size_t n) { HOST_CALL(); return set(__func__, p, n, v, n, 1, 0); }
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) { HOST_CALL(); return set(__func__, p, n, v, n, 1, s); }
cudaError_t cudaMemset2D(void *p, size_t pitch, int v, size_t w, size_t h) { HOST_CALL(); return set(__func__, p, pitch, v, w, h, 0); }
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int v, size_t w, size_t h, cudaStream_t s) { HOST_CALL(); return set(__func__, p, pitch, v, w, h, s); }
cudaError_t cudaMemset3D(struct cudaPitchedPtr p, int v, struct cudaExtent e) { HOST_CALL(); return set(__func__, p.ptr, p.pitch, v, e.width, e.height * e.depth, 0); }

static cudaError_t symbol_copy(const char *function, const void *symbol, size_t offset, void *other, size_t n, enum cudaMemcpyKind kind, int to_symbol, cudaStream_t s, int synchronous) {
    void *address;
    size_t size;
    if (cudaGetSymbolAddress(&address, symbol) != cudaSuccess) return (cudaError_t)api_result(function, cudaErrorInvalidSymbol);
    cudaGetSymbolSize(&size, symbol);
    if (offset + n > size)
        return (cudaError_t)api_error(function, cudaErrorInvalidValue, "%zu bytes at offset %zu do not fit into the symbol's %zu bytes", n, offset, size);
    address = (u8 *)address + offset;
    return to_symbol ? copy(function, address, n, other, n, n, 1, kind, s, synchronous) : copy(function, other, n, address, n, n, 1, kind, s, synchronous);
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, enum cudaMemcpyKind kind) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, (void *)from, n, kind, 1, 0, 1); }
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, to, n, kind, 0, 0, 1); }
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t n, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, (void *)from, n, kind, 1, s, 0); }
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, to, n, kind, 0, s, 0); }
