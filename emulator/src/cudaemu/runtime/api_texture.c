/* CUDA arrays, texture objects and surface objects. */

#include "textures.h"
#include <stdlib.h>

static int is_integer(enum cudaChannelFormatKind kind) { return kind == cudaChannelFormatKindSigned || kind == cudaChannelFormatKindUnsigned; }

/* The bytes of an element with one, two or four channels of 8, 16 or 32 bits each; 0 for any other format. */
static u32 element_bytes(const struct cudaChannelFormatDesc *f) {
    const int bits[4] = {f->x, f->y, f->z, f->w};
    int n = 0;
    while (n < 4 && bits[n]) n++;
    for (int i = 0; i < 4; i++)
        if (i < n ? bits[i] != bits[0] : bits[i] != 0) return 0;
    if (n == 0 || n == 3 || (f->x != 8 && f->x != 16 && f->x != 32)) return 0;
    if (f->f == cudaChannelFormatKindFloat ? f->x == 8 : !is_integer(f->f)) return 0;
    return (u32)(n * f->x / 8);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------------- */

static u64 at_least_one(size_t n) { return n ? n : 1; }

static cudaError_t allocate_array(const char *function, cudaArray_t *out, const struct cudaChannelFormatDesc *format, struct cudaExtent e, unsigned flags) {
    u32 element = format ? element_bytes(format) : 0;
    if (!out || !e.width) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    if (!element) return (cudaError_t)api_error(function, cudaErrorInvalidChannelDescriptor, "bad_channels", "of:array");
    if (flags & cudaArrayCubemap) return (cudaError_t)api_error(function, cudaErrorNotSupported, "emulator_lacks", "what:cube maps\ninstead:use a layered array with six layers");
    if (flags & (cudaArraySparse | cudaArrayDeferredMapping)) return (cudaError_t)api_error(function, cudaErrorNotSupported, "emulator_lacks", "what:sparse arrays\ninstead:allocate the whole array");
    struct allocation *a = memory_allocate(e.width * at_least_one(e.height) * at_least_one(e.depth) * element, 512, MEMORY_DEVICE, function);
    if (!a) return (cudaError_t)api_result(function, cudaErrorMemoryAllocation);
    struct array *array = malloc(sizeof *array);
    *array = (struct array){a->start, *format, e, element, flags};
    *out = (cudaArray_t)array;
    return (cudaError_t)api_result(function, cudaSuccess);
}
cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format, size_t width, size_t height, unsigned flags) {
    HOST_CALL();
    return allocate_array(__func__, out, format, (struct cudaExtent){width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format, struct cudaExtent e, unsigned flags) { HOST_CALL(); return allocate_array(__func__, out, format, e, flags); }
cudaError_t cudaFreeArray(cudaArray_t handle) {
    HOST_CALL();
    if (!handle) return API(cudaSuccess);
    work_wait(NULL, 0);
    return API(memory_free(((struct array *)handle)->memory, MEMORY_DEVICE, __func__));
}
cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent, unsigned *flags, cudaArray_t handle) {
    const struct array *a = (struct array *)handle;
    if (!a) return API(cudaErrorInvalidResourceHandle);
    if (format) *format = a->format;
    if (extent) *extent = a->extent;
    if (flags) *flags = a->flags;
    return API(cudaSuccess);
}
cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t handle) {
    if (!handle) return API(cudaErrorInvalidResourceHandle);
    *format = ((const struct array *)handle)->format;
    return API(cudaSuccess);
}
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind kind) { return (struct cudaChannelFormatDesc){x, y, z, w, kind}; }

/* ---- objects ------------------------------------------------------------------------------------------------------------ */

#define HANDLES 0x0600000000000000ull
static struct texture **objects;
static u32 object_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct texture *texture_of(u64 handle) {
    u64 i = handle - HANDLES;
    pthread_mutex_lock(&lock);
    struct texture *t = i < object_count ? objects[i] : NULL;
    pthread_mutex_unlock(&lock);
    return t;
}

static u64 keep(const struct texture *t) {
    pthread_mutex_lock(&lock);
    objects = realloc(objects, (object_count + 1) * sizeof *objects);
    objects[object_count] = malloc(sizeof *t);
    *objects[object_count] = *t;
    u64 handle = HANDLES + object_count++;
    pthread_mutex_unlock(&lock);
    return handle;
}

static int forget(u64 handle, int surface) {
    struct texture *t = texture_of(handle);
    if (!t || t->is_surface != surface) return cudaErrorInvalidValue;
    work_wait(NULL, 0);
    pthread_mutex_lock(&lock);
    objects[handle - HANDLES] = NULL;
    pthread_mutex_unlock(&lock);
    free(t);
    return cudaSuccess;
}

static void set_format(struct texture *t, const struct cudaChannelFormatDesc *f, u32 element) {
    t->kind = f->f, t->bits = (u32)f->x, t->element = element, t->channels = element * 8 / t->bits;
}

/* Sets the texture's memory and layout; returns an error code. */
static int set_resource(struct texture *t, const struct cudaResourceDesc *r) {
    t->resource = *r;
    if (r->resType == cudaResourceTypeArray) {
        const struct array *a = (const struct array *)r->res.array.array;
        if (!a) return cudaErrorInvalidValue;
        set_format(t, &a->format, a->element);
        t->memory = a->memory;
        t->size[0] = (u32)a->extent.width, t->size[1] = (u32)a->extent.height;
        if (a->flags & cudaArrayLayered) t->layers = (u32)a->extent.depth;
        else t->size[2] = (u32)a->extent.depth;
        t->pitch = a->extent.width * a->element;
        t->slice = t->pitch * at_least_one(a->extent.height);
    } else if (r->resType == cudaResourceTypeLinear) {
        u32 element = element_bytes(&r->res.linear.desc);
        if (!element || (u64)r->res.linear.devPtr % 16) return cudaErrorInvalidValue;
        set_format(t, &r->res.linear.desc, element);
        t->memory = (u64)r->res.linear.devPtr;
        t->size[0] = (u32)(r->res.linear.sizeInBytes / element);
    } else if (r->resType == cudaResourceTypePitch2D) {
        u32 element = element_bytes(&r->res.pitch2D.desc);
        if (!element || r->res.pitch2D.pitchInBytes % 32) return cudaErrorInvalidValue;
        set_format(t, &r->res.pitch2D.desc, element);
        t->memory = (u64)r->res.pitch2D.devPtr;
        t->size[0] = (u32)r->res.pitch2D.width, t->size[1] = (u32)r->res.pitch2D.height;
        t->pitch = r->res.pitch2D.pitchInBytes;
    } else
        return cudaErrorNotSupported;
    if (!memory_find(t->memory)) return cudaErrorInvalidValue;
    t->host = memory_host(t->memory);
    return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const struct cudaResourceDesc *r, const struct cudaTextureDesc *d, const struct cudaResourceViewDesc *view) {
    HOST_CALL();
    struct texture t = {0};
    if (!out || !r || !d) return API(cudaErrorInvalidValue);
    if (view || r->resType == cudaResourceTypeMipmappedArray) return (cudaError_t)api_error(__func__, cudaErrorNotSupported, "emulator_lacks", "what:mipmaps and resource views\ninstead:use one array for each level");
    if (d->sRGB) return (cudaError_t)api_error(__func__, cudaErrorNotSupported, "emulator_lacks", "what:sRGB textures\ninstead:convert in the kernel");
    int code = set_resource(&t, r);
    if (code) return API(code);
    t.normalizes = d->readMode == cudaReadModeNormalizedFloat && is_integer(t.kind);
    if (t.normalizes && t.bits == 32) return API(cudaErrorInvalidNormSetting);
    t.linear = d->filterMode == cudaFilterModeLinear;
    if (t.linear && is_integer(t.kind) && !t.normalizes) return API(cudaErrorInvalidFilterSetting);
    t.normalized = d->normalizedCoords != 0;
    for (int i = 0; i < 3; i++) {
        t.mode[i] = d->addressMode[i];
        if (!t.normalized && (t.mode[i] == cudaAddressModeWrap || t.mode[i] == cudaAddressModeMirror)) t.mode[i] = cudaAddressModeClamp;
    }
    if (r->resType == cudaResourceTypeLinear) t.mode[0] = cudaAddressModeBorder; /* reads outside return zero */
    else memcpy(t.border, d->borderColor, sizeof t.border);
    t.description = *d;
    *out = keep(&t);
    return API(cudaSuccess);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle) { return API(forget(handle, 0)); }
cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *r, cudaTextureObject_t handle) { if (!texture_of(handle)) return API(cudaErrorInvalidValue); *r = texture_of(handle)->resource; return API(cudaSuccess); }
cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *d, cudaTextureObject_t handle) { if (!texture_of(handle)) return API(cudaErrorInvalidValue); *d = texture_of(handle)->description; return API(cudaSuccess); }

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const struct cudaResourceDesc *r) {
    HOST_CALL();
    struct texture t = {.is_surface = 1};
    if (!out || !r || r->resType != cudaResourceTypeArray) return API(cudaErrorInvalidValue);
    int code = set_resource(&t, r);
    if (code) return API(code);
    if (!(((const struct array *)r->res.array.array)->flags & cudaArraySurfaceLoadStore))
        return (cudaError_t)api_error(__func__, cudaErrorInvalidValue, "not_for_surfaces", "of:array");
    *out = keep(&t);
    return API(cudaSuccess);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t handle) { return API(forget(handle, 1)); }
cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *r, cudaSurfaceObject_t handle) { if (!texture_of(handle)) return API(cudaErrorInvalidValue); *r = texture_of(handle)->resource; return API(cudaSuccess); }
