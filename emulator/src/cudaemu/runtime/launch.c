/* Registration of nvcc's modules, the checks that a GPU makes before a launch, and the launch.
 *
 * nvcc's host code registers each object's device code through __cudaRegisterFatBinary. The build renames that symbol
 * per object (objcopy), and the object's translated module supplies the renamed function, so the runtime knows which
 * module a kernel belongs to even when two files have kernels of the same name. */

#include "emu.h"
#include <stdlib.h>

struct known_kernel { const void *host; const struct kernel_info *kernel; struct module *module; u32 max_dynamic; };
struct known_variable { const void *host; const struct variable_info *variable; struct module *module; };
static struct known_kernel *kernels;
static struct known_variable *variables;
static u32 kernel_count, variable_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REGISTERS_PER_BLOCK 65536u
#define AT_ONCE 512u /* a grid of so many blocks surely runs as a whole at the same time */

/* Assigns a device address to every variable and function of the module. */
static void start_module(struct module *m) {
    if (m->started) return;
    m->started = 1;
    for (u32 i = 0; i < m->info->variable_count; i++) {
        const struct variable_info *v = &m->info->variables[i];
        char label[64];
        snprintf(label, sizeof label, "the %s variable %s", v->space == VARIABLE_CONST ? "__constant__" : v->space == VARIABLE_MANAGED ? "__managed__" : "__device__",
                 demangle(v->name));
        struct allocation *a = memory_allocate(v->size ? v->size : 1, v->align, v->space == VARIABLE_MANAGED ? MEMORY_MANAGED : MEMORY_VARIABLE, label);
        if (!a) {
            fprintf(stderr, "emulator: the variable %s of %llu bytes does not fit into device memory\n", v->name, (unsigned long long)v->size);
            _Exit(125);
        }
        if (v->space == VARIABLE_MANAGED) a->kind = MEMORY_VARIABLE;
        *v->address = a->start;
        if (v->data) memcpy((void *)(a->start + (u64)a->delta), v->data, v->size);
    }
    for (u32 i = 0; i < m->info->function_count; i++) *m->info->functions[i].address = 0x0700000000000000ull + (u64)m->info->functions[i].run % (1ull << 48);
    for (u32 i = 0; i < m->info->variable_count; i++) {
        const struct variable_info *v = &m->info->variables[i];
        for (u32 k = 0; k < v->move_count; k++) {
            u64 value = *v->moves[k].address + v->moves[k].addend;
            memcpy(memory_host(*v->address + v->moves[k].offset), &value, 8);
        }
    }
}

/* `per_thread`: the file was compiled with --default-stream per-thread. */
void **emu_register(struct module_info *info, int per_thread) {
    default_stream_per_thread |= per_thread;
    struct module *m = calloc(1, sizeof *m);
    m->info = info;
    is_watching |= info->watched;
    start_module(m);
    return (void **)m;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
char __cudaInitModule(void **handle) { (void)handle; return 1; }

void __cudaRegisterFunction(void **handle, const char *host, char *device_function_name, const char *device_name, int thread_limit, void *tid, void *bid,
                            void *block, void *grid, int *size) {
    (void)device_function_name, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    struct module *m = (struct module *)handle;
    for (u32 i = 0; i < m->info->kernel_count; i++)
        if (strcmp(m->info->kernels[i].name, device_name) == 0) {
            pthread_mutex_lock(&lock);
            kernels = realloc(kernels, (kernel_count + 1) * sizeof *kernels);
            kernels[kernel_count++] = (struct known_kernel){host, &m->info->kernels[i], m, 0};
            pthread_mutex_unlock(&lock);
            return;
        }
}

static const struct variable_info *variable_named(struct module *m, const char *name) {
    for (u32 i = 0; i < m->info->variable_count; i++)
        if (strcmp(m->info->variables[i].name, name) == 0) return &m->info->variables[i];
    return NULL;
}

void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *name, int external, size_t size, int constant, int global) {
    (void)device_address, (void)external, (void)size, (void)constant, (void)global;
    struct module *m = (struct module *)handle;
    const struct variable_info *v = variable_named(m, name);
    if (!v) return;
    variables = realloc(variables, (variable_count + 1) * sizeof *variables);
    variables[variable_count++] = (struct known_variable){host, v, m};
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device_address, const char *name, int external, size_t size, int constant, int global) {
    (void)device_address, (void)external, (void)size, (void)constant, (void)global;
    struct module *m = (struct module *)handle;
    const struct variable_info *v = variable_named(m, name);
    if (!v) return;
    *host = (void *)*v->address;
    variables = realloc(variables, (variable_count + 1) * sizeof *variables);
    variables[variable_count++] = (struct known_variable){host, v, m};
}
void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) { (void)handle, (void)name, (void)host, (void)size; }

/* ---- symbols ---------------------------------------------------------------------------------------------------------- */

static struct known_variable *symbol(const void *host) {
    for (u32 i = 0; i < variable_count; i++)
        if (variables[i].host == host) return &variables[i];
    return NULL;
}
cudaError_t cudaGetSymbolAddress(void **out, const void *host) {
    struct known_variable *v = symbol(host);
    if (!v) return API(cudaErrorInvalidSymbol);
    *out = (void *)*v->variable->address;
    return API(cudaSuccess);
}
cudaError_t cudaGetSymbolSize(size_t *out, const void *host) {
    struct known_variable *v = symbol(host);
    if (!v) return API(cudaErrorInvalidSymbol);
    *out = v->variable->size;
    return API(cudaSuccess);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

static struct known_kernel *kernel_of(const void *host) {
    for (u32 i = 0; i < kernel_count; i++)
        if (kernels[i].host == host) return &kernels[i];
    return NULL;
}

/* A cudaKernel_t is a pointer to the host function of a registered kernel. */
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host) {
    *out = (cudaKernel_t)host;
    return cudaSuccess;
}
cudaError_t cudaGetKernel(cudaKernel_t *out, const void *host) { return __cudaGetKernel(out, host); }
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *host) {
    *out = (cudaFunction_t)host;
    return API(kernel_of(host) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* The bytes of a kernel's parameter, as the driver's cuFuncGetParamInfo says; -1 behind the last one. */
int emu_parameter_bytes(const void *host, u32 number) {
    const struct known_kernel *known = kernel_of(host);
    return known && number < known->kernel->parameter_count ? (int)known->kernel->parameters[number].size : -1;
}

struct configuration { dim3 grid, block; size_t shared; cudaStream_t stream; };
static __thread struct configuration stack[16];
static __thread u32 depth;
static __thread int from_stub; /* a launch by <<<>>>, whose line is that of the call of __cudaPushCallConfiguration */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    HOST_CALL();
    if (depth < 16) stack[depth++] = (struct configuration){grid, block, shared, (cudaStream_t)stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    if (depth == 0) return cudaErrorMissingConfiguration;
    struct configuration *c = &stack[--depth];
    from_stub = 1;
    *grid = c->grid, *block = c->block, *shared = c->shared, *(cudaStream_t *)stream = c->stream;
    return cudaSuccess;
}

/* The bytes of dynamic shared memory that a launch may have. */
static u32 dynamic_limit(const struct known_kernel *known) {
    const u32 taken = known->kernel->static_shared;
    return known->max_dynamic ? known->max_dynamic : taken < SHARED_DEFAULT ? SHARED_DEFAULT - taken : 0;
}

static u32 round_up(u32 x, u32 to) { return (x + to - 1) / to * to; }

/* The registers that a block takes: each warp gets a multiple of 256. */
static u32 block_registers(const struct kernel_info *k, u32 threads) { return round_up(k->registers * 32, 256) * ((threads + 31) / 32); }

static int refuse(const char *function, int code, const struct kernel_info *k, const char *facts) {
    finding(NULL, ~0u, 0, "api", "launch_refused", "function:%s\nlaunched:%s\n%s", function, demangle(k->name), facts);
    return api_result(function, code);
}

/* The error of a launch with an impossible grid or block: the runtime of CUDA 13 passes on the driver's code. */
#define INVALID_SHAPE (CUDART_VERSION >= 13000 ? cudaErrorInvalidValue : cudaErrorInvalidConfiguration)

int computed_floats;
static int run_kernel(struct work *work) {
    struct launch *l = (struct launch *)work;
    const struct kernel_info *k = l->kernel;
    if (!l->start_ns) {
        if (MUST_NOT_RUN) return 1;
        l->start_ns = now_ns(), l->limit_start_ns = clock_ns(limit_clock);
    }
    if (!run_launch(l)) return 0;
    u64 end = now_ns();
    if (k->floats) computed_floats = 1;
    fflush(stdout);
    if (trace_enabled()) {
        char name[2100], counted[4500];
        counters_text(l, counted, sizeof counted);
        if (!is_sampled()) trace_line("{\"kind\":\"kernel\",\"name\":%s,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers\":%u,\"static_shared_bytes\":%u,"
                   "\"dynamic_shared_bytes\":%u,\"local_bytes\":%u,\"start_ns\":%llu,\"end_ns\":%llu,\"stream\":%d,\"counters\":%s}",
                   json_string(demangle(k->name), name, sizeof name), l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], k->registers,
                   k->static_shared, l->dynamic_shared, k->local_bytes, (unsigned long long)l->start_ns, (unsigned long long)end, work->stream->number, counted);
    }
    return 1;
}

/* Checks a launch's cluster size. If none is given ({0, 0, 0}), takes the kernel's __cluster_dims__. Returns the reason
 * to refuse the launch, or NULL. */
static const char *cluster_problem(const struct kernel_info *k, dim3 grid, u32 *cluster) {
    if (!cluster[0]) memcpy(cluster, k->cluster, sizeof k->cluster);
    if (!cluster[0]) return NULL;
    const u32 sizes[3] = {grid.x, grid.y, grid.z};
    if (!HAS_CLUSTERS) return "how:no_clusters";
    if (k->cluster[0] && memcmp(cluster, k->cluster, sizeof k->cluster)) return "how:cluster_differs";
    for (int d = 0; d < 3; d++)
        if (!cluster[d] || sizes[d] % cluster[d]) return "how:cluster_multiple";
    return cluster[0] * cluster[1] * cluster[2] > CLUSTER_MAXIMUM ? "how:cluster_size" : NULL;
}

enum { COOPERATIVE = 1, MAY_OVERLAP = 2 };
static int launch(const char *function, const void *host, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream, int how, const dim3 *in_clusters) {
    struct known_kernel *known = kernel_of(host);
    if (!known) return api_result(function, cudaErrorInvalidDeviceFunction);
    if (surface_fault()) return api_result(function, sticky_error);
    const struct kernel_info *k = known->kernel;
    char text[400];
    u64 threads = (u64)block.x * block.y * block.z;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) {
        const char *zero = !grid.x ? "grid.x" : !grid.y ? "grid.y" : !grid.z ? "grid.z" : !block.x ? "block.x" : !block.y ? "block.y" : "block.z";
        snprintf(text, sizeof text, "how:zero\nzero:%s\ngrid:(%u,%u,%u)\nshape:(%u,%u,%u)", zero, grid.x, grid.y, grid.z, block.x, block.y, block.z);
        return refuse(function, INVALID_SHAPE, k, text);
    }
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
        snprintf(text, sizeof text, "how:grid\ngrid:(%u,%u,%u)", grid.x, grid.y, grid.z);
        return refuse(function, INVALID_SHAPE, k, text);
    }
    if (threads > 1024 || block.x > 1024 || block.y > 1024 || block.z > 64) {
        snprintf(text, sizeof text, "how:block\nshape:(%u,%u,%u)\nthreads=%llu", block.x, block.y, block.z, (unsigned long long)threads);
        return refuse(function, INVALID_SHAPE, k, text);
    }
    u32 cluster[3] = {in_clusters ? in_clusters->x : 0, in_clusters ? in_clusters->y : 0, in_clusters ? in_clusters->z : 0};
    const char *problem = cluster_problem(k, grid, cluster);
    if (problem) return refuse(function, cudaErrorInvalidClusterSize, k, problem);
    const u32 allowed = dynamic_limit(known);
    if (shared > allowed) {
        const u32 most = gpu->shared_per_block - k->static_shared;
        const char *how = shared > most ? "shared_never" : known->max_dynamic ? "shared_allowed" : "shared";
        int n = snprintf(text, sizeof text, "how:%s\nbytes=%zu\nlimit=%u\narchitecture=%u", how, shared, shared > most ? most : allowed, gpu->architecture);
        if (k->static_shared) snprintf(text + n, sizeof text - n, "\nstatic=%u", k->static_shared);
        return refuse(function, cudaErrorInvalidValue, k, text);
    }
    if (k->max_threads && threads > k->max_threads) {
        snprintf(text, sizeof text, "how:bounds\nthreads=%llu\nlimit=%u", (unsigned long long)threads, k->max_threads);
        return refuse(function, cudaErrorInvalidValue, k, text);
    }
    if (block_registers(k, (u32)threads) > REGISTERS_PER_BLOCK) {
        snprintf(text, sizeof text, "how:registers\nregisters=%u\nthreads=%llu\nlimit=%u", k->registers, (unsigned long long)threads, REGISTERS_PER_BLOCK);
        return refuse(function, cudaErrorLaunchOutOfResources, k, text);
    }
    for (u32 i = 0; i < k->parameter_count; i++)
        if (!args || !args[i]) return refuse(function, cudaErrorInvalidValue, k, "how:arguments");
    int captured = capture_launch(stream, host, grid, block, args, shared);
    if (captured >= 0) return api_result(function, captured);
    if (pending_fault) return api_result(function, cudaSuccess);
    u64 bytes = (sizeof(struct launch) + k->parameter_bytes + 63) & ~63ull;
    struct launch *l = aligned_alloc(64, bytes);
    memset(l, 0, bytes);
    static u64 ids;
    l->kernel = k, l->module = known->module, l->id = __atomic_add_fetch(&ids, 1, __ATOMIC_SEQ_CST);
    l->grid[0] = grid.x, l->grid[1] = grid.y, l->grid[2] = grid.z;
    l->block[0] = block.x, l->block[1] = block.y, l->block[2] = block.z;
    l->threads = (u32)threads, l->warps = ((u32)threads + 31) / 32, l->blocks = (u64)grid.x * grid.y * grid.z;
    l->dynamic_shared = (u32)shared, l->shared_bytes = (shared ? k->dynamic_offset : SHARED_START + k->static_shared) + (u32)shared;
    l->cooperative = how & COOPERATIVE, l->has_clusters = cluster[0] > 0;
    for (int d = 0; d < 3; d++) l->cluster[d] = cluster[d] ? cluster[d] : 1;
    l->cluster_size = l->cluster[0] * l->cluster[1] * l->cluster[2];
    for (u32 i = 0; i < k->parameter_count; i++) memcpy(l->params + k->parameters[i].offset, args[i], k->parameters[i].size);
    l->work = (struct work){.stream = stream_of(stream), .run = run_kernel, .on_heap = 1, .triggers = k->triggers && l->blocks <= AT_ONCE, .may_overlap = how & MAY_OVERLAP};
    pending_kernel(l);
    work_submit(&l->work, sizeof *l);
    return api_result(function, cudaSuccess);
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    if (!from_stub) HOST_CALL();
    from_stub = 0;
    return (cudaError_t)launch(__func__, f, grid, block, args, shared, stream, 0, NULL);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    if (!from_stub) HOST_CALL();
    from_stub = 0;
    return (cudaError_t)launch("cudaLaunchKernel", (const void *)k, grid, block, args, shared, stream, 0, NULL);
}

/* ---- occupancy and attributes -------------------------------------------------------------------------------------------- */

#define REGISTERS_PER_SM 65536u

/* Blocks of a kernel that fit on a multiprocessor of the emulated GPU, by the rules of CUDA's occupancy calculator. */
static int resident_blocks(const struct kernel_info *k, u32 threads, size_t dynamic) {
    u32 warps = (threads + 31) / 32;
    if (!warps || threads > 1024) return 0;
    u32 by_warps = gpu->threads / 32 / warps;
    u32 per_warp = round_up(k->registers * 32, 256);
    u32 by_registers = per_warp ? REGISTERS_PER_SM / 4 / per_warp * 4 / warps : gpu->blocks;
    u32 bytes = round_up(k->static_shared + (u32)dynamic + SHARED_RESERVED, 128);
    u32 by_shared = gpu->shared / bytes;
    u32 least = gpu->blocks;
    if (by_warps < least) least = by_warps;
    if (by_registers < least) least = by_registers;
    if (by_shared < least) least = by_shared;
    return (int)least;
}

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream) {
    HOST_CALL();
    struct known_kernel *known = kernel_of(f);
    if (known) {
        u64 blocks = (u64)grid.x * grid.y * grid.z;
        if (blocks > (u64)gpu->multiprocessors * (u64)resident_blocks(known->kernel, block.x * block.y * block.z, shared))
            return (cudaError_t)refuse(__func__, cudaErrorCooperativeLaunchTooLarge, known->kernel, "how:cooperative");
    }
    return (cudaError_t)launch(__func__, f, grid, block, args, shared, stream, COOPERATIVE, NULL);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **args) {
    int cooperative = 0, overlaps = 0;
    dim3 cluster = {0, 0, 0};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        if (c->attrs[i].id == cudaLaunchAttributeCooperative) cooperative = c->attrs[i].val.cooperative;
        if (c->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) overlaps = c->attrs[i].val.programmaticStreamSerializationAllowed;
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            cluster = (dim3){c->attrs[i].val.clusterDim.x, c->attrs[i].val.clusterDim.y, c->attrs[i].val.clusterDim.z};
    }
    if (cooperative && !cluster.x) return cudaLaunchCooperativeKernel(f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream);
    HOST_CALL();
    return (cudaError_t)launch(__func__, f, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream, (cooperative ? COOPERATIVE : 0) | (overlaps ? MAY_OVERLAP : 0), &cluster);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int threads, size_t dynamic) {
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    *n = resident_blocks(known->kernel, (u32)threads, dynamic);
    return API(cudaSuccess);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int threads, size_t dynamic, unsigned flags) {
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, f, threads, dynamic);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *f, const cudaLaunchConfig_t *c) {
    (void)c;
    *size = HAS_CLUSTERS ? 8 : 1; /* the portable maximum */
    return API(kernel_of(f) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}
/* Assumes that a cluster may use any multiprocessors. On a GPU they must belong to one graphics processing cluster. */
cudaError_t cudaOccupancyMaxActiveClusters(int *n, const void *f, const cudaLaunchConfig_t *c) {
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    u32 blocks = 1;
    for (unsigned i = 0; i < c->numAttrs; i++)
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension) blocks = c->attrs[i].val.clusterDim.x * c->attrs[i].val.clusterDim.y * c->attrs[i].val.clusterDim.z;
    *n = HAS_CLUSTERS && blocks ? (int)(gpu->multiprocessors * (u32)resident_blocks(known->kernel, c->blockDim.x * c->blockDim.y * c->blockDim.z, c->dynamicSmemBytes) / blocks) : 0;
    return API(cudaSuccess);
}
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks, int threads) {
    struct known_kernel *known = kernel_of(f);
    (void)threads;
    if (!known || blocks < 1) return API(cudaErrorInvalidValue);
    u32 each = gpu->shared / (u32)blocks / 128 * 128;
    u32 taken = known->kernel->static_shared + SHARED_RESERVED;
    *bytes = each > taken ? each - taken : 0;
    return API(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) {
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    const struct kernel_info *k = known->kernel;
    memset(a, 0, sizeof *a);
    a->sharedSizeBytes = k->static_shared, a->localSizeBytes = k->local_bytes, a->numRegs = (int)k->registers;
    a->maxThreadsPerBlock = k->max_threads ? (int)k->max_threads : 1024;
    while (a->maxThreadsPerBlock > 32 && block_registers(k, (u32)a->maxThreadsPerBlock) > REGISTERS_PER_BLOCK) a->maxThreadsPerBlock -= 32;
    a->ptxVersion = a->binaryVersion = (int)gpu->architecture;
    a->maxDynamicSharedSizeBytes = (int)dynamic_limit(known);
    return API(cudaSuccess);
}
cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute attribute, int value) {
    HOST_CALL();
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || (u32)value + known->kernel->static_shared > gpu->shared_per_block)
            return (cudaError_t)api_error(__func__, cudaErrorInvalidValue, "too_much_shared", "bytes=%d\nstatic=%u\narchitecture=%u\nlimit=%u", value, known->kernel->static_shared, gpu->architecture, gpu->shared_per_block);
        known->max_dynamic = (u32)value > SHARED_DEFAULT - known->kernel->static_shared ? (u32)value : 0;
    }
    return API(cudaSuccess);
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t k, enum cudaFuncAttribute attribute, int value, int device) {
    HOST_CALL();
    return device ? API(cudaErrorInvalidDevice) : cudaFuncSetAttribute((const void *)k, attribute, value);
}
cudaError_t cudaFuncGetParamInfo(const void *f, size_t i, size_t *offset, size_t *size) {
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    if (i >= known->kernel->parameter_count) return API(cudaErrorInvalidValue);
    *offset = known->kernel->parameters[i].offset;
    if (size) *size = known->kernel->parameters[i].size;
    return API(cudaSuccess);
}
cudaError_t cudaFuncSetCacheConfig(const void *f, enum cudaFuncCache c) { (void)f, (void)c; return API(cudaSuccess); }
cudaError_t cudaFuncSetSharedMemConfig(const void *f, enum cudaSharedMemConfig c) { (void)f, (void)c; return API(cudaSuccess); }
cudaError_t cudaFuncGetName(const char **name, const void *f) {
    struct known_kernel *known = kernel_of(f);
    if (!known) return API(cudaErrorInvalidDeviceFunction);
    *name = known->kernel->name;
    return API(cudaSuccess);
}

const struct kernel_info *kernel_info_of(const void *host) {
    const struct known_kernel *known = kernel_of(host);
    return known ? known->kernel : NULL;
}

