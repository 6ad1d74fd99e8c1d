/* Copies and sets. Pointers are resolved and checked at the call; the bytes move when the stream reaches the copy. */

#include "emu.h"
#include <stdlib.h>

/* ---- pointers ------------------------------------------------------------------------------------------------------------ */

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_BOTH, SIDE_BAD };

/* The host address for a pointer of a copy. A device pointer's whole range must be inside one allocation. */
static enum side resolve(const char *function, const void *p, u64 bytes, void **host) {
    struct allocation *a = memory_find((u64)p);
    if (a) {
        *host = (void *)((u64)p + (u64)a->delta);
        if ((u64)p + bytes > a->start + a->size) {
            char text[512];
            memory_place(a, (u64)p, text, sizeof text);
            finding(NULL, ~0u, 0, "memory", "copy_too_long", "function:%s\nbytes=%llu\nexcess=%llu\n%s", function, (unsigned long long)bytes, (unsigned long long)((u64)p + bytes - a->start - a->size), text);
            return SIDE_BAD;
        }
        return a->delta ? SIDE_DEVICE : SIDE_BOTH;
    }
    *host = (void *)p;
    if (memory_is_arena((u64)p)) {
        char text[512];
        memory_facts((u64)p, text, sizeof text);
        finding(NULL, ~0u, 0, "memory", "copy_outside", "function:%s\n%s", function, text);
        return SIDE_BAD;
    }
    return SIDE_HOST;
}

static const char *const DIRECTIONS[] = {"HtoH", "HtoD", "DtoH", "DtoD"};

struct copy_work {
    struct work work;
    struct move m; /* with host addresses */
    u8 *to;        /* the device addresses */
    const u8 *from;
    u8 *staged;    /* the copy that stage() made of ordinary host memory, or NULL */
    const char *function;
    int direction, number;
};

static void move_bytes(const struct move *m) {
    for (u64 z = 0; z < m->planes; z++) {
        u8 *to = m->to + z * m->to_slice;
        const u8 *from = m->from + z * m->from_slice;
        if (m->rows == 1 || (m->to_pitch == m->width && m->from_pitch == m->width)) memmove(to, from, m->width * m->rows);
        else
            for (u64 r = 0; r < m->rows; r++) memmove(to + r * m->to_pitch, from + r * m->from_pitch, m->width);
    }
}

static void watch_move(const struct copy_work *c) {
    const struct move *m = &c->m;
    watch_lock();
    for (u64 z = 0; z < m->planes; z++)
        for (u64 r = 0; r < m->rows; r++)
            written_copy(c->function, c->to + z * m->to_slice + r * m->to_pitch, c->from + z * m->from_slice + r * m->from_pitch, m->width);
    watch_unlock();
}

/* Tells values.c which values were copied, or replaced by the host's. */
static void record_move(const struct copy_work *c) {
    const struct move *m = &c->m;
    for (u64 z = 0; z < m->planes; z++)
        for (u64 r = 0; r < m->rows; r++) {
            u8 *to = c->to + z * m->to_slice + r * m->to_pitch;
            const u8 *from = c->from + z * m->from_slice + r * m->from_pitch;
            if (c->direction == 1) values_written(to, m->width);
            else if (c->direction > 1) values_copied(to, from, m->width, c->direction == 2);
        }
}

static int run_copy(struct work *work) {
    struct copy_work *c = (struct copy_work *)work;
    if (MUST_NOT_RUN) return 1;
    u64 start = now_ns();
    move_bytes(&c->m);
    if (is_watching) watch_move(c);
    if (values_on) record_move(c);
    trace_line("{\"kind\":\"memcpy\",\"direction\":\"%s\",\"bytes\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"stream\":%d}", DIRECTIONS[c->direction],
               (unsigned long long)(c->m.width * c->m.rows * c->m.planes), (unsigned long long)start, (unsigned long long)now_ns(), c->number);
    free(c->staged);
    return 1;
}

/* Copies the source, because a copy that runs later must see the bytes as they are at the call. */
static void stage(struct copy_work *c) {
    struct move *m = &c->m;
    struct move whole = *m;
    whole.to = c->staged = malloc(m->width * m->rows * m->planes);
    whole.to_pitch = m->width, whole.to_slice = m->width * m->rows;
    move_bytes(&whole);
    m->from = c->staged, m->from_pitch = whole.to_pitch, m->from_slice = whole.to_slice;
}

cudaError_t move_submit(const char *function, const struct move *m, cudaStream_t stream, int synchronous) {
    struct stream *s = stream_of(stream);
    if (synchronous) work_wait(s, 0);
    if (synchronous && surface_fault()) return (cudaError_t)api_result(function, sticky_error);
    if (MUST_NOT_RUN) return (cudaError_t)api_result(function, sticky_error);
    if (m->width == 0 || m->rows == 0 || m->planes == 0) return (cudaError_t)api_result(function, cudaSuccess);
    if (m->rows > 1 && (m->to_pitch < m->width || m->from_pitch < m->width)) return (cudaError_t)api_result(function, cudaErrorInvalidPitchValue);
    if (!m->to || !m->from) return (cudaError_t)api_error(function, cudaErrorInvalidValue, "copy_null", "side:%s", m->to ? "source" : "destination");
    void *t, *f;
    enum side ts = resolve(function, m->to, (m->planes - 1) * m->to_slice + (m->rows - 1) * m->to_pitch + m->width, &t);
    enum side fs = resolve(function, m->from, (m->planes - 1) * m->from_slice + (m->rows - 1) * m->from_pitch + m->width, &f);
    if (ts == SIDE_BAD || fs == SIDE_BAD) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    int kind = (int)m->kind;
    if (kind < 0 || kind > 4) return (cudaError_t)api_result(function, cudaErrorInvalidMemcpyDirection);
    const char *wrong = NULL;
    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) && ts == SIDE_HOST) wrong = "to_host";
    if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice) && fs == SIDE_HOST) wrong = "from_host";
    if ((kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost) && fs == SIDE_DEVICE) wrong = "from_device";
    if ((kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) && ts == SIDE_DEVICE) wrong = "to_device";
    if (wrong) return (cudaError_t)api_error(function, cudaErrorInvalidValue, "copy_direction", "how:%s", wrong);
    int captured = synchronous ? -1 : capture_move(stream, m);
    if (captured >= 0) return (cudaError_t)api_result(function, captured);
    int d = kind == cudaMemcpyDefault ? (fs == SIDE_HOST ? 0 : 2) + (ts == SIDE_HOST ? 0 : 1) : kind == cudaMemcpyHostToDevice ? 1 : kind == cudaMemcpyDeviceToHost ? 2 : kind == cudaMemcpyDeviceToDevice ? 3 : 0;
    struct copy_work c = {.work = {.stream = s, .run = run_copy}, .m = *m, .to = m->to, .from = m->from, .function = function, .direction = d, .number = s->number};
    c.m.to = t, c.m.from = f;
    if (fs == SIDE_HOST && !work_is_done(s, 0)) stage(&c);
    pending_copy(s, (u64)m->to, (u64)m->from);
    const u64 to_bytes = (m->planes - 1) * m->to_slice + (m->rows - 1) * m->to_pitch + m->width;
    guard_lift((u64)t, to_bytes), guard_lift((u64)f, m->width);
    u64 id = work_submit(&c.work, sizeof c);
    if (!id && !synchronous) {
        if (fs == SIDE_DEVICE) guard_copy(function, s, (u64)m->to, to_bytes, 0);
        if (ts == SIDE_DEVICE && m->rows * m->planes == 1) guard_copy(function, s, (u64)m->from, m->width, 1);
    }
    if (id && (synchronous || ts == SIDE_HOST)) work_wait(NULL, id);
    return (cudaError_t)api_result(function, cudaSuccess);
}

static cudaError_t copy(const char *function, void *to, u64 to_pitch, const void *from, u64 from_pitch, u64 width, u64 rows, enum cudaMemcpyKind kind,
                        cudaStream_t stream, int synchronous) {
    struct move m = {to, from, to_pitch, 0, from_pitch, 0, width, rows, 1, kind};
    return move_submit(function, &m, stream, synchronous);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, n, from, n, n, 1, kind, 0, 1); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, n, from, n, n, 1, kind, s, 0); }
cudaError_t cudaMemcpy2D(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, tp, from, fp, w, h, kind, 0, 1); }
cudaError_t cudaMemcpy2DAsync(void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, tp, from, fp, w, h, kind, s, 0); }
cudaError_t cudaMemcpyPeer(void *to, int td, const void *from, int fd, size_t n) { HOST_CALL(); (void)td, (void)fd; return copy(__func__, to, n, from, n, n, 1, cudaMemcpyDeviceToDevice, 0, 1); }
cudaError_t cudaMemcpyPeerAsync(void *to, int td, const void *from, int fd, size_t n, cudaStream_t s) { HOST_CALL(); (void)td, (void)fd; return copy(__func__, to, n, from, n, n, 1, cudaMemcpyDeviceToDevice, s, 0); }

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *sizes, size_t count, struct cudaMemcpyAttributes *attributes, size_t *indices, size_t n, cudaStream_t s) {
    HOST_CALL();
    (void)attributes, (void)indices, (void)n;
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < count && !e; i++) e = copy(__func__, to[i], sizes[i], from[i], sizes[i], sizes[i], 1, cudaMemcpyDefault, s, 0);
    return e;
}

/* Positions and the extent's width count elements if an array takes part, else bytes. */
int move_of_parameters(const struct cudaMemcpy3DParms *p, struct move *m) {
    const struct array *t = (const struct array *)p->dstArray, *f = (const struct array *)p->srcArray;
    if ((t && p->dstPtr.ptr) || (f && p->srcPtr.ptr)) return 0;
    u64 unit = t ? t->element : f ? f->element : 1;
    *m = (struct move){.width = p->extent.width * unit, .rows = p->extent.height, .planes = p->extent.depth, .kind = p->kind};
    m->to_pitch = t ? t->extent.width * t->element : p->dstPtr.pitch;
    m->to_slice = m->to_pitch * (t ? (t->extent.height ? t->extent.height : 1) : p->dstPtr.ysize);
    m->from_pitch = f ? f->extent.width * f->element : p->srcPtr.pitch;
    m->from_slice = m->from_pitch * (f ? (f->extent.height ? f->extent.height : 1) : p->srcPtr.ysize);
    m->to = (t ? (u8 *)t->memory : (u8 *)p->dstPtr.ptr) + p->dstPos.z * m->to_slice + p->dstPos.y * m->to_pitch + p->dstPos.x * (t ? t->element : 1);
    m->from = (f ? (const u8 *)f->memory : (const u8 *)p->srcPtr.ptr) + p->srcPos.z * m->from_slice + p->srcPos.y * m->from_pitch + p->srcPos.x * (f ? f->element : 1);
    return 1;
}
static cudaError_t copy3d(const char *function, const struct cudaMemcpy3DParms *p, cudaStream_t s, int synchronous) {
    struct move m;
    if (!p || !move_of_parameters(p, &m)) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    return move_submit(function, &m, s, synchronous);
}
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { HOST_CALL(); return copy3d(__func__, p, 0, 1); }
cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) { HOST_CALL(); return copy3d(__func__, p, s, 0); }
static struct cudaMemcpy3DParms within_device(const struct cudaMemcpy3DPeerParms *p) {
    return (struct cudaMemcpy3DParms){p->srcArray, p->srcPos, p->srcPtr, p->dstArray, p->dstPos, p->dstPtr, p->extent, cudaMemcpyDeviceToDevice};
}
cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p) { HOST_CALL(); struct cudaMemcpy3DParms q = within_device(p); return copy3d(__func__, &q, 0, 1); }
cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t s) { HOST_CALL(); struct cudaMemcpy3DParms q = within_device(p); return copy3d(__func__, &q, s, 0); }

/* ---- arrays ------------------------------------------------------------------------------------------------------------ */

/* The device address of byte x of row y of an array; NULL without one. */
static u8 *in_array(cudaArray_const_t handle, u64 x, u64 y) {
    const struct array *a = (const struct array *)handle;
    return a ? (u8 *)a->memory + y * a->extent.width * a->element + x : NULL;
}
static u64 pitch_of(cudaArray_const_t a) { return a ? ((const struct array *)a)->extent.width * ((const struct array *)a)->element : 0; }

cudaError_t cudaMemcpy2DToArray(cudaArray_t a, size_t x, size_t y, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, in_array(a, x, y), pitch_of(a), from, fp, w, h, kind, 0, 1); }
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t a, size_t x, size_t y, const void *from, size_t fp, size_t w, size_t h, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, in_array(a, x, y), pitch_of(a), from, fp, w, h, kind, s, 0); }
cudaError_t cudaMemcpy2DFromArray(void *to, size_t tp, cudaArray_const_t a, size_t x, size_t y, size_t w, size_t h, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, tp, in_array(a, x, y), pitch_of(a), w, h, kind, 0, 1); }
cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t tp, cudaArray_const_t a, size_t x, size_t y, size_t w, size_t h, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, tp, in_array(a, x, y), pitch_of(a), w, h, kind, s, 0); }
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t tx, size_t ty, cudaArray_const_t from, size_t fx, size_t fy, size_t w, size_t h, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, in_array(to, tx, ty), pitch_of(to), in_array(from, fx, fy), pitch_of(from), w, h, kind, 0, 1); }
/* Rows of an array have no gaps, so bytes that span several rows are contiguous. */
cudaError_t cudaMemcpyToArray(cudaArray_t a, size_t x, size_t y, const void *from, size_t n, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, in_array(a, x, y), n, from, n, n, 1, kind, 0, 1); }
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t a, size_t x, size_t y, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, in_array(a, x, y), n, from, n, n, 1, kind, s, 0); }
cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t a, size_t x, size_t y, size_t n, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, to, n, in_array(a, x, y), n, n, 1, kind, 0, 1); }
cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t a, size_t x, size_t y, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return copy(__func__, to, n, in_array(a, x, y), n, n, 1, kind, s, 0); }
cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t tx, size_t ty, cudaArray_const_t from, size_t fx, size_t fy, size_t n, enum cudaMemcpyKind kind) { HOST_CALL(); return copy(__func__, in_array(to, tx, ty), n, in_array(from, fx, fy), n, n, 1, kind, 0, 1); }

/* ---- sets ---------------------------------------------------------------------------------------------------------------- */

struct set_work { struct work work; u8 *host, *to; u64 pitch, width, rows; u32 value, element; int number; };

static int run_set(struct work *work) {
    struct set_work *s = (struct set_work *)work;
    if (MUST_NOT_RUN) return 1;
    u64 start = now_ns();
    for (u64 r = 0; r < s->rows; r++) {
        u8 *row = s->host + r * s->pitch;
        if (s->element == 1) memset(row, (int)s->value, s->width);
        else
            for (u64 i = 0; i < s->width; i++) memcpy(row + i * s->element, &s->value, s->element);
        values_written(s->to + r * s->pitch, s->width * s->element);
        if (is_watching) watch_lock(), written_by_host(s->to + r * s->pitch, s->width * s->element), watch_unlock();
    }
    trace_line("{\"kind\":\"memset\",\"bytes\":%llu,\"start_ns\":%llu,\"end_ns\":%llu,\"stream\":%d}", (unsigned long long)(s->width * s->rows * s->element),
               (unsigned long long)start, (unsigned long long)now_ns(), s->number);
    return 1;
}

cudaError_t set_submit(const char *function, void *to, u64 pitch, u32 value, u32 element, u64 width, u64 rows, cudaStream_t stream) {
    if (MUST_NOT_RUN) return (cudaError_t)api_result(function, sticky_error);
    if (width == 0 || rows == 0) return (cudaError_t)api_result(function, cudaSuccess);
    void *t;
    enum side side = resolve(function, to, (rows - 1) * pitch + width * element, &t);
    if (side == SIDE_HOST)
        return (cudaError_t)api_error(function, cudaErrorInvalidValue, "not_device_memory", "why:host");
    if (side == SIDE_BAD) return (cudaError_t)api_result(function, cudaErrorInvalidValue);
    int captured = capture_set(stream, to, pitch, value, element, width, rows);
    if (captured >= 0) return (cudaError_t)api_result(function, captured);
    struct stream *s = stream_of(stream);
    struct set_work w = {.work = {.stream = s, .run = run_set}, .host = t, .to = to, .pitch = pitch, .width = width, .rows = rows, .value = value, .element = element, .number = s->number};
    guard_lift((u64)t, (rows - 1) * pitch + width * element);
    work_submit(&w.work, sizeof w);
    return (cudaError_t)api_result(function, cudaSuccess);
}
static cudaError_t set(const char *function, void *to, u64 pitch, int value, u64 width, u64 rows, cudaStream_t stream) { return set_submit(function, to, pitch, (u8)value, 1, width, rows, stream); }
cudaError_t cudaMemset(void *p, int v, size_t n) { HOST_CALL(); return set(__func__, p, n, v, n, 1, 0); }
cudaError_t cudaMemsetAsync(void *p, int v, size_t n, cudaStream_t s) { HOST_CALL(); return set(__func__, p, n, v, n, 1, s); }
cudaError_t cudaMemset2D(void *p, size_t pitch, int v, size_t w, size_t h) { HOST_CALL(); return set(__func__, p, pitch, v, w, h, 0); }
cudaError_t cudaMemset2DAsync(void *p, size_t pitch, int v, size_t w, size_t h, cudaStream_t s) { HOST_CALL(); return set(__func__, p, pitch, v, w, h, s); }
static cudaError_t set3d(const char *function, struct cudaPitchedPtr p, int v, struct cudaExtent e, cudaStream_t s) {
    if (e.height == p.ysize) return set(function, p.ptr, p.pitch, v, e.width, e.height * e.depth, s);
    cudaError_t error = cudaSuccess;
    for (u64 z = 0; z < e.depth && !error; z++) error = set(function, (u8 *)p.ptr + z * p.pitch * p.ysize, p.pitch, v, e.width, e.height, s);
    return error;
}
cudaError_t cudaMemset3D(struct cudaPitchedPtr p, int v, struct cudaExtent e) { HOST_CALL(); return set3d(__func__, p, v, e, 0); }
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr p, int v, struct cudaExtent e, cudaStream_t s) { HOST_CALL(); return set3d(__func__, p, v, e, s); }

/* ---- symbols ------------------------------------------------------------------------------------------------------------- */

static cudaError_t symbol_copy(const char *function, const void *symbol, size_t offset, void *other, size_t n, enum cudaMemcpyKind kind, int to_symbol, cudaStream_t s, int synchronous) {
    void *address;
    size_t size;
    if (cudaGetSymbolAddress(&address, symbol) != cudaSuccess) return (cudaError_t)api_result(function, cudaErrorInvalidSymbol);
    cudaGetSymbolSize(&size, symbol);
    if (offset + n > size)
        return (cudaError_t)api_error(function, cudaErrorInvalidValue, "symbol_too_small", "bytes=%zu\noffset=%zu\nsize=%zu", n, offset, size);
    address = (u8 *)address + offset;
    return to_symbol ? copy(function, address, n, other, n, n, 1, kind, s, synchronous) : copy(function, other, n, address, n, n, 1, kind, s, synchronous);
}
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, enum cudaMemcpyKind kind) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, (void *)from, n, kind, 1, 0, 1); }
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, to, n, kind, 0, 0, 1); }
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t n, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, (void *)from, n, kind, 1, s, 0); }
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind, cudaStream_t s) { HOST_CALL(); return symbol_copy(__func__, symbol, offset, to, n, kind, 0, s, 0); }
