/* Graphs by stream capture: what is submitted to a capturing stream is written down and done at cudaGraphLaunch. */

#include "emu.h"
#include <stdlib.h>

struct step {
    int what; /* 0 kernel, 1 copy, 2 set */
    const void *host;
    dim3 grid, block;
    size_t shared;
    void **args;
    u8 *bytes;
    void *to;
    const void *from;
    u64 to_pitch, from_pitch, width, rows;
    int value;
};
struct graph { struct step *steps; u32 count; };
static struct graph *capturing;
static cudaStream_t capture_stream;

static struct step *add(void) {
    capturing->steps = realloc(capturing->steps, (capturing->count + 1) * sizeof *capturing->steps);
    struct step *s = &capturing->steps[capturing->count++];
    memset(s, 0, sizeof *s);
    return s;
}
/* Each gives -1 when the stream does not capture. While one does, work of streams that wait for it is captured too. */
int capture_launch(cudaStream_t stream, const void *host, dim3 grid, dim3 block, void **args, size_t shared, const struct kernel_info *k) {
    if (!capturing || !stream) return -1;
    struct step *s = add();
    s->host = host, s->grid = grid, s->block = block, s->shared = shared;
    s->args = calloc(k->parameter_count + 1, sizeof *s->args);
    s->bytes = calloc(1, k->parameter_bytes + 1);
    for (u32 i = 0; i < k->parameter_count; i++) {
        s->args[i] = s->bytes + k->parameters[i].offset;
        memcpy(s->args[i], args[i], k->parameters[i].size);
    }
    return cudaSuccess;
}
int capture_copy(cudaStream_t stream, void *to, u64 to_pitch, const void *from, u64 from_pitch, u64 width, u64 rows) {
    if (!capturing || !stream) return -1;
    struct step *s = add();
    s->what = 1, s->to = to, s->to_pitch = to_pitch, s->from = from, s->from_pitch = from_pitch, s->width = width, s->rows = rows;
    return cudaSuccess;
}
int capture_set(cudaStream_t stream, void *to, u64 pitch, int value, u64 element, u64 width, u64 rows) {
    (void)element;
    if (!capturing || !stream) return -1;
    struct step *s = add();
    s->what = 2, s->to = to, s->to_pitch = pitch, s->value = value, s->width = width, s->rows = rows;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    (void)mode;
    if (!s || capturing) return API(cudaErrorStreamCaptureUnsupported);
    capturing = calloc(1, sizeof *capturing);
    capture_stream = s;
    return API(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    if (!capturing || s != capture_stream) return API(cudaErrorIllegalState);
    *out = (cudaGraph_t)capturing;
    capturing = NULL;
    return API(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
    *status = capturing && s ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return API(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) { (void)flags; *out = (cudaGraphExec_t)g; return API(cudaSuccess); }
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) { return cudaGraphInstantiate(out, g, flags); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream) {
    struct graph *g = (struct graph *)e;
    for (u32 i = 0; i < g->count; i++) {
        struct step *s = &g->steps[i];
        cudaError_t code = s->what == 0   ? cudaLaunchKernel(s->host, s->grid, s->block, s->args, s->shared, stream)
                           : s->what == 1 ? cudaMemcpy2DAsync(s->to, s->to_pitch, s->from, s->from_pitch, s->width, s->rows, cudaMemcpyDefault, stream)
                                          : cudaMemset2DAsync(s->to, s->to_pitch, s->value, s->width, s->rows, stream);
        if (code) return code;
    }
    return API(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) { (void)e; return API(cudaSuccess); }
cudaError_t cudaGraphDestroy(cudaGraph_t g) { (void)g; return API(cudaSuccess); }
cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t s) { (void)e, (void)s; return API(cudaSuccess); }
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *n) { (void)nodes; *n = ((struct graph *)g)->count; return API(cudaSuccess); }
