/* Declarations that the runtime's files share, by layer. A file calls files of its own layer and of the layers above it
 * in this list. Only in the layers of execution and the API do files call each other in circles.
 *
 * Foundation, which depends on nothing else
 *   state.c       variables that several layers read
 *   fiber.c       switching stacks
 *   threaded.c    running rows of threaded code
 *   host_place.c  the place of a call in host code
 *   device.c      the emulated GPU's facts
 *   fused.c       a * b + c where the processor lacks it
 *   rounding.c    operations under a directed rounding mode
 *   tensor_sums.c sums of matrix instructions
 *   video.c       video instructions
 * Reports
 *   report.c      trace lines, diagnostics, the API's errors
 * Memory
 *   memory.c      allocations: the table of what is allocated where, device arena, lookups
 *   written.c     which bytes of global memory hold a value
 *   guard.c       host memory that the program must not touch
 * Watching and counting
 *   order.c       the order of a launch's accesses by barriers, fences and atomics
 *   shadow.c      races and uninitialised reads
 *   proxies.c     accesses to shared memory by asynchronous operations
 *   counters.c    the counters of a program built to count
 * Execution
 *   access.c      the slow path of loads and stores; decides what is a fault
 *   copies.c      asynchronous copies, which arrive when a thread waits for them
 *   syncwarp.c    __syncwarp() that not all lanes of its mask reach
 *   cluster.c     clusters of blocks: their barrier, and whose shared memory an address names
 *   registers.c   setmaxnreg, by which warps pass on registers
 *   dependents.c  kernels that begin before their predecessor has ended
 *   faults.c      the first fault, which stops its launch
 *   barriers.c    the barriers of a block
 *   progress.c    loops that never end
 *   blocks.c      the memory of blocks: stacks, shared and local memory
 *   schedule.c    the turns of warps and blocks: polls, deadlocks
 *   workers.c     worker threads, and the launches that they run
 * Instructions
 *   whole.c       vector accesses that never tear
 *   words.c       loads of words whose addresses differ from lane to lane
 *   atomics.c     atom and red
 *   apart.c       lanes of a warp that wait for each other
 *   gather.c      warp functions whose lanes arrive separately
 *   ways.c        control flow between blocks
 *   mbarrier.c    barrier objects in shared memory
 *   tensor_map.c  boxes of tensors, and the maps that describe them
 *   bulk.c        bulk copies, which arrive while threads wait for them
 *   wgmma*.c      products of warpgroups, which take effect when threads wait for them
 *   tensor*.c     matrix instructions
 *   textures.c    tex, tld4, suld and sust
 *   print.c       device printf and assert
 * The API
 *   work.c        work submitted to streams, and the order in which it runs
 *   pending.c     copies that do not wait for a kernel that uses the same memory
 *   launch.c      registration of kernels and variables, launch checks, cudaLaunchKernel
 *   api_*.c       the CUDA runtime API by subject
 *   absent.c      functions that the emulator refuses
 * The process
 *   overtime.c    reports what was running when the time was nearly up
 *   process.c     the start and end of a program, and its crashes
 */
#ifndef EMU_H
#define EMU_H

#include "device.h"
#include "module.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- errors ------------------------------------------------------------------------------------------------------- */

/* Stores an error for cudaGetLastError, traces it, and returns it. */
int api_result(const char *function, int code);
int api_error(const char *function, int code, const char *kind, const char *facts, ...) __attribute__((format(printf, 4, 5)));
#define API(code) ((cudaError_t)api_result(__func__, (int)(code)))
/* The sticky error of a kernel's fault, which synchronising calls report; 0 if there is none. */
int surface_fault(void);
extern int sticky_error;  /* a fault that the host knows of: every later call returns it */
extern int pending_fault; /* a kernel's fault that the host does not know of yet */
#define MUST_NOT_RUN (sticky_error || pending_fault) /* nothing runs after a fault */

/* ---- memory --------------------------------------------------------------------------------------------------------- */

enum memory_kind { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_PINNED, MEMORY_REGISTERED, MEMORY_VARIABLE, MEMORY_HEAP };

struct allocation {
    u64 start, size;  /* device addresses */
    i64 delta;        /* device address + delta = host address */
    enum memory_kind kind;
    int freed;
    u64 serial;       /* order of allocation, for reports */
    char label[64];   /* the variable's name, or the call that allocated it */
    const void *made_at; /* address of the host's call, for place_facts; or NULL */
    u8 *written;        /* written.c, or NULL */
    struct cell *cells; /* shadow.c, or NULL */
    u64 cells_bytes;
};

#define DEVICE_MEMORY_BYTES (40ull << 30)
void memory_start(void);
/* NULL if there is not enough memory. */
struct allocation *memory_allocate(u64 bytes, u64 align, enum memory_kind kind, const char *label);
void memory_adopt(void *host, u64 bytes, enum memory_kind kind, const char *label); /* host memory that kernels may use */
int memory_free(u64 address, enum memory_kind kind, const char *function); /* an error code */
void memory_again(u64 address); /* allocates freed device memory again, at the same address */
/* The live allocation that holds the address; NULL when none. */
struct allocation *memory_find(u64 address);
/* The nearest allocation, live or freed, for reports. */
struct allocation *memory_nearest(u64 address);
int memory_is_arena(u64 address); /* inside the device address range, allocated or not */
void *memory_host(u64 address);   /* the host's pointer to a device (or host) address */
u64 memory_used(void);
void memory_reset(void);         /* frees all but the program's variables */
void memory_report_leaks(void);
/* Facts about a bad address, and the kind of fault that an access to it is. */
const char *memory_facts(u64 address, char *text, size_t size);
/* Facts about an allocation: its size, the call that made it, and where. */
void allocation_facts(const struct allocation *a, char *text, size_t size);
/* The same, and the offset of an address in it. */
void memory_place(const struct allocation *a, u64 address, char *text, size_t size);
/* Facts about a place in shared memory: the variable, its size, the offset; how far it is past its end. */
void shared_place(const struct kernel_info *k, u32 offset, u32 shared_size, char *text, size_t size);
/* The start and size of the variable at an offset; 0 if none is known. */
u32 shared_extent(const struct kernel_info *k, u32 offset, u32 shared_size, u32 *start);
/* Whether the variable at an offset is dynamic shared memory. */
int shared_is_dynamic(const struct kernel_info *k, u32 offset, u32 shared_size);
/* The name of the variable at an offset; "" if none is known. */
const char *shared_variable(const struct kernel_info *k, u32 offset, u32 shared_size);

/* ---- copies --------------------------------------------------------------------------------------------------------- */

/* A box of bytes to copy, with the program's pointers. */
struct move {
    u8 *to;
    const u8 *from;
    u64 to_pitch, to_slice, from_pitch, from_slice; /* bytes from row to row, from plane to plane */
    u64 width, rows, planes;
    enum cudaMemcpyKind kind;
};
#define MOVE(TO, FROM, BYTES, KIND) (struct move){.to = (u8 *)(TO), .from = (const u8 *)(FROM), .width = (BYTES), .rows = 1, .planes = 1, .kind = (KIND)}
cudaError_t move_submit(const char *function, const struct move *m, cudaStream_t stream, int synchronous);
/* Converts cudaMemcpy3D's parameters to a move; 0 if they are invalid. */
int move_of_parameters(const struct cudaMemcpy3DParms *p, struct move *m);
cudaError_t set_submit(const char *function, void *to, u64 pitch, u32 value, u32 element, u64 width, u64 rows, cudaStream_t stream);

/* Memory of a CUDA array: rows without gaps, planes without gaps. A cudaArray_t points to it. */
struct array {
    u64 memory; /* device address */
    struct cudaChannelFormatDesc format;
    struct cudaExtent extent; /* in elements, as given: 0 for a missing dimension */
    u32 element; /* bytes */
    unsigned flags;
};

/* ---- streams -------------------------------------------------------------------------------------------------------- */

struct stream {
    int number, priority, has_runner;
    unsigned flags;
    struct graph *captures; /* api_capture.c: submitted work becomes nodes of this graph, after `tails` */
    struct node **tails;
    u32 tail_count;
    unsigned char attributes[20][sizeof(cudaStreamAttrValue)]; /* by cudaStreamAttrID */
};
extern struct stream legacy_stream;
extern int default_stream_per_thread;
struct stream *stream_of(cudaStream_t handle);
int stream_number(cudaStream_t s);
int stream_waits(const struct stream *s, const struct stream *earlier); /* whether work in `s` waits for earlier work in `earlier` */

struct graph *captured_graph(struct stream *s); /* NULL if the stream does not capture */
/* In a stream that captures, these add a node to its graph; in other streams they return -1. */
int capture_launch(cudaStream_t stream, const void *host, dim3 grid, dim3 block, void **args, size_t shared);
int capture_move(cudaStream_t stream, const struct move *m);
int capture_set(cudaStream_t stream, void *to, u64 pitch, u32 value, u32 element, u64 width, u64 rows);
int capture_host(cudaStream_t stream, cudaHostFn_t f, void *data);
int capture_event(cudaStream_t stream, cudaEvent_t event, enum cudaGraphNodeType type);
int capture_alloc(cudaStream_t stream, void *p, int is_free);
/* The graph and the last nodes of a stream that captures; -1 for other streams. */
int capture_record(cudaStream_t stream, struct graph **graph, struct node ***nodes, u32 *count);
/* Makes the stream join a graph's capture and wait for these nodes. */
int capture_wait(cudaStream_t stream, struct graph *graph, struct node **nodes, u32 count);

/* The first member of submitted work. `run` returns 0 if it got nowhere and must be called again on another thread. */
struct work {
    struct work *next;
    struct stream *stream;
    u64 id, after; /* `after`: work of another stream that this work waits for; or 0 */
    int (*run)(struct work *);
    const void *host_call;
    int on_heap, is_running;
    int triggers, may_overlap;           /* a kernel that triggers dependents; one that may begin before its prerequisite has ended */
    volatile int stops_at_trigger;       /* dependents.c */
    struct work *volatile prerequisite, *dependent; /* kernels it overlaps with: the earlier one until that has ended, the later one */
};
/* Runs work, or queues it: if it is on the heap, the work itself, which work.c then frees; otherwise a copy of its `bytes`.
 * Returns its id if it is not done yet, else 0. */
u64 work_submit(struct work *w, size_t bytes);
/* Both act on the work with this id, or, if that is 0, on the work that this stream would wait for (NULL: on all work). */
int work_is_done(const struct stream *s, u64 id);
void work_wait(const struct stream *s, u64 id);
int all_wait_for_one(u32 *waits); /* whether all threads of the program wait for the one piece of work that runs; and how often one began to wait */

/* ---- launches ------------------------------------------------------------------------------------------------------- */

struct module {
    struct module_info *info;
    int started;
};

struct launch {
    struct work work;
    const struct kernel_info *kernel;
    struct module *module;
    u32 grid[3], block[3];
    u32 dynamic_shared, shared_bytes;
    u32 threads, warps;
    u32 cluster[3], cluster_size; /* blocks; 1 without clusters */
    u64 blocks;
    u64 next; /* the next block, or cluster of blocks, to start */
    u64 id;
    int cooperative, has_clusters;
    volatile int abort;
    int error;
    u32 fuel, patience; /* schedule.c */
    u64 workspace;      /* of a cooperative grid: device memory for the barrier of cooperative groups */
    u64 start_ns;
    u64 limit_start_ns; /* on the clock of the time limit */
    struct counters *counters; /* counters.c */
    struct kernel_lines *lines; /* counters.c: where they are added up */
    u64 sampled;               /* of its blocks, or clusters, those that run */
    double weight;             /* of what they count, for the whole launch and those that it stands for */
    struct worker *worker;     /* the worker that is not a thread of the pool */
    struct launch *next_under_way;
    int has_pool, is_alone; /* the pool's threads help; no other launch was under way when it began */
    volatile int gets_nowhere;
    u32 epoch; /* progress.c: the changes that its workers have seen */
    u64 quiet; /* an epoch that began while the host waited, and all_wait_for_one's number then */
    u8 params[] __attribute__((aligned(64))); /* kernel_info.parameter_bytes */
};

#define FUEL 65536u /* loop iterations until rt_poll */
enum warp_state { WARP_READY, WARP_WAITS, WARP_DONE, WARP_DEAD };

struct barrier { u32 expected, arrived; u32 reduce_count, reduce_lanes; u32 generation; u32 last_count, last_any, last_all; u32 partial; };

struct fiber { void *stack_pointer; u8 *stack; };

/* The last access by another block of the cluster to this block's shared memory since this block last waited for others;
 * w is NULL if there was none. */
struct visit { struct warp *w; u32 site, lane, phase; }; /* phase: of the cluster's barrier */

#define EARLY_READS 32u
struct early_read { u32 warp, site, thread, addr; };

struct block {
    struct launch *launch;
    struct worker *worker;
    struct warp *warps;
    struct fiber *fibers;
    u8 *state; /* enum warp_state */
    u8 *waits_at;
    u32 *wait_site;
    u32 warp_count, done, current, threads_alive, polls, waits;
    u32 epoch_alive; /* shadow.c: threads that had not exited when this epoch began */
    u64 index;
    u32 indexed[3]; /* the block shape for which the warps' thread indices are set */
    struct barrier barriers[16];
    u8 *shared, *local;
    u32 local_bytes;
    void *pool_next;
    struct cell *shadow; /* shadow.c */
    u32 shadow_words, early_count;
    u32 *local_written; /* shadow.c; NULL until a function has local memory */
    struct early_read early[EARLY_READS]; /* of this epoch: reads of shared memory that no thread had written yet */
    u32 stamp, epoch, segment, fenced_segments, acquired, acquiring, cluster_synced; /* order.c */
    u32 waited; /* the stamp of the last griddepcontrol.wait; dependents.c */
    struct proxies *proxies; /* proxies.c; NULL until needed */
    u32 asked_in_vain; /* mbarrier.c: unsuccessful tests since any other progress */
    struct objects *objects; /* mbarrier.c */
    struct copies *copies; /* copies.c: of each warp; NULL until the first copy */
    struct cluster *cluster; /* cluster.c; NULL without one */
    struct visit visit;
    struct bulk *bulk; /* bulk.c; NULL until the first copy */
    struct wgmma *wgmma; /* wgmma.c: of each warpgroup; NULL until the first product */
};

#define CLUSTER_MAXIMUM 16u
struct cluster {
    struct block *blocks[CLUSTER_MAXIMUM]; /* by rank */
    u32 size, ended;                       /* blocks */
    u32 arrived, phase;                    /* of the barrier: threads that have arrived, and phases completed */
    u32 completed;                         /* the stamp of the last completed phase */
};
/* The index in the grid of the block with this rank in cluster `number`. */
u64 cluster_place(const struct launch *l, u64 number, u32 rank);
/* Ends a block. Returns the blocks whose memory is now free, linked by pool_next. */
struct block *cluster_leave(struct block *b);
/* Called when a block ends: reports another block's last access to its shared memory if nothing made it wait for that. */
void cluster_check_end(struct block *b);
/* The block that an address of shared memory in a cluster names; NULL if there is none, or it has ended. */
struct block *cluster_block(struct block *b, u64 address);

/* Whether the block's program was built for --sanitize race,init. */
INLINE int is_watched(const struct block *b) { return b->launch->module->info->watched != 0; }

/* Makes room for one more element of an array. */
#define MAKE_ROOM(array, count, capacity)                                                                              \
    do {                                                                                                               \
        if ((count) == (capacity)) (array) = realloc((array), ((capacity) = (capacity) ? 2 * (capacity) : 64) * sizeof *(array)); \
    } while (0)

/* Unsuccessful tests in a row, without any other progress, after which a block counts as deadlocked. */
#define VAIN_MAXIMUM (FUEL / 16)
/* Called when waiting threads of the block may be able to continue, so that it does not count as spinning. */
INLINE void makes_progress(struct block *b) { b->asked_in_vain = b->polls = b->waits = 0; }

struct worker {
    pthread_t thread;
    u32 index;
    struct launch *launch;
    struct block **active; /* the launch's resident blocks */
    u32 active_count, active_capacity;
    int more; /* blocks may remain to be started */
    struct allocation *workspace; /* for the grid barrier of cooperative groups */
    struct worker *next_spare;
    struct site *sites;
    u32 site_capacity;
    struct allocation **site_allocations; /* when accesses are watched: what each site last touched */
    void *scheduler_stack_pointer;
    struct fiber *running; /* the last warp that ran */
    struct block *free_blocks; /* with the capacity below */
    u32 capacity_warps, capacity_shared, capacity_local;
    struct counters *counters;
    u32 is_watching, ready, events, completed, proved; /* progress.c */
};
extern u32 own_threads; /* threads that the runtime has created: progress.c */

const struct kernel_info *kernel_info_of(const void *host); /* NULL if the pointer is not a kernel's */
extern int computed_floats; /* whether a kernel ran that may compute with floating-point numbers */
extern u32 is_watching; /* a module is watched */
/* values.c */
extern int values_on;
void values_start(void);
void values_finish(void);
void values_end_warp(struct warp *w);
void values_written(const void *to, u64 bytes);
void values_copied(const void *to, const void *from, u64 bytes, int to_host);
void shadow_start(struct block *b);
void counters_begin(struct launch *l); /* before a launch begins: decides which of its blocks run */
int is_sampled(void); /* in a sampled run few blocks run, and results are wrong */
void counters_block(struct block *b); /* before a block runs */
void counters_block_done(struct block *b);
void counters_start(struct worker *k, struct launch *l); /* before a worker's blocks of a launch */
void counters_stop(struct worker *k, struct launch *l);  /* after them */
void counters_text(struct launch *l, char *buffer, size_t size); /* the launch's counters as a JSON object */
void counters_finish(void); /* writes the counts by source line to the trace */
void shadow_end_epoch(struct block *b); /* all have reached a barrier, or left */
void shadow_end(struct block *b);
int shadow_order(struct warp *w, u32 site);
/* `whose`: the block whose shared memory is accessed; NULL for global memory. `host` is the host address of the bytes, `value`
 * what a store is about to write there. */
void shadow_access(struct warp *w, u32 site, struct block *whose, u64 addr, u32 lane, u32 bytes, const u8 *host, const u8 *value);
/* A function's local memory begins to exist for lanes m; one lane accesses elements of local memory. */
void shadow_local_start(struct warp *w, u32 m, u32 offset, u32 bytes);
void shadow_local_access(struct warp *w, u32 site, u64 addr, u32 lane, u32 bytes, u32 element);
/* The bytes of a copy, which shadow_access recorded at its issue, have arrived in the shared memory of `target`. `swizzle` is
 * the number of 16-byte chunks of the tensor map's swizzle, or 0 without a map. `on_time` is 0 if they arrived after the phase
 * that should have waited for them, which has been reported. */
void shadow_arrival(struct warp *w, struct block *target, u32 site, u64 addr, u32 lane, u32 bytes, u32 swizzle, int on_time);
/* An asynchronous operation begins to read shared memory. Until the next one begins, shadow_access counts asynchronous reads
 * as its own. Returns its number. */
u32 read_begins(struct warp *w, u32 site, u32 lane);
void read_ends(struct warp *w, u32 number);
/* A wgmma reads a chunk through a descriptor whose swizzle covers this many chunks of 16 bytes. */
void check_swizzle(struct warp *w, u32 site, u32 addr, u32 swizzle);
/* Called when a copy is issued that completes at a barrier object of the block. */
void check_object(struct warp *w, u32 site, u32 lane, u32 addr);
void proxies_start(struct block *b);
void proxies_end(struct block *b);
void syncwarp_unmet(struct warp *w); /* reports the lanes that __syncwarp() still waits for */
/* Whether this pair of places has not been reported yet, or this place with a finding of kind k, for which b is ~k. */
int first_time(const void *of, u32 a, u32 b);
u64 findings_repeated(void); /* the number of findings at places reported before */

void copies_start(struct block *b); /* discards copies in flight from the previous block */
void copies_end(struct block *b);

#define NO_SEGMENT (~0u)
#define OTHER_LAUNCH (~0ull) /* instead of a block */
enum order { ORDER_BEFORE, ORDER_NONE_IN_BLOCK, ORDER_NONE_IN_GRID };
void order_start_launch(const struct launch *l);
void order_start_block(struct block *b);
void order_barrier(struct block *b);
void order_fence(struct block *b);
void order_strong_access(struct block *b);
void order_access(struct block *b);
int order_uses_fences(void);
/* The stamp of the next phase that begins. */
u32 order_next(void);
/* The order between an access in a phase and one that the warp makes now. */
enum order order_of(const struct warp *w, u32 stamp, u64 *other_block);

void written_mark(struct allocation *a, u64 offset, u64 bytes);
int written_all(const struct allocation *a, u64 offset, u64 bytes);
void written_by_host(void *to, u64 bytes);
void written_copy(const char *function, void *to, const void *from, u64 bytes);

/* The host address of a valid access, which sanitizers do not record. */
void *quiet_address(struct warp *w, u32 site, int space, u64 addr, u32 lane);
/* rt_address for an access of `bytes` of which only `used` are read. */
void *rt_address_part(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes, u32 used);
u64 schedule_seed_of(u64 index); /* the seed of a block's random numbers; not 0 */
u32 random_below(u64 *state, u32 limit);
int schedule_hurry(const struct launch *l); /* whether the launch will be stopped */
/* Returns 1 at the launch's end, or 0 if it gets nowhere: then call it again from another thread. */
int run_launch(struct launch *l);
/* Between these calls, only this thread may use watched memory (shadow.c, written.c, order.c). */
void watch_lock(void);
void watch_unlock(void);
extern __thread struct worker *this_worker;
extern u32 worker_count;
extern struct launch *volatile launches_under_way;
void fiber_switch(void **save, void *to);
void *fiber_prepare(u8 *stack_top, void (*entry)(void *), void *argument);
#define FIBER_STACK (1u << 20)
#define GUARD_BYTES (1u << 18) /* inaccessible, below a stack: more than a frame can step over */
void yield_warp(struct warp *w); /* returns at the warp's next turn */
/* rt_fault for a warp other than the one that runs. */
void report_fault(struct warp *w, u32 site, u32 lane, int code, const char *kind, const char *facts, ...) __attribute__((format(printf, 6, 7)));
/* Reports an access to a bad address. Returns memory to use instead, or, unless the program goes on, not at all. */
void *bad_access(struct warp *w, u32 site, u32 lane, int goes_on, int code, const char *kind, const char *facts, ...) __attribute__((format(printf, 7, 8)));
/* rt_address for an atomic. */
void *atomic_address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes);
void leave_warp(struct warp *w, int state) __attribute__((noreturn));
void thread_of(struct warp *w, u32 lane, u32 *xyz);
void barrier_orders(struct block *b); /* under --sanitize race, orders the block's earlier accesses before its later ones */

/* ---- diverged lanes ----------------------------------------------------------------------------------------- */

/* Called when no other lane can continue. Returns whether the lanes at the end of the divided region (`beyond`, or 0) must leave
 * it without the others. */
int take_turns(struct warp *w, struct apart *a, u32 beyond);
/* Whether a lane of the mask `missing` is pending anywhere and has waited. */
int must_hold(const struct trip *t, u32 missing);
/* The lanes of t->m that may continue at `block`; the others are held there. `call` numbers the instruction (0: __syncwarp(),
 * which syncwarp.c reports on). */
u32 gather_lanes(struct warp *w, struct trip *t, u32 block, u32 site, u32 call);

/* ---- reports -------------------------------------------------------------------------------------------------------- */

/* The line and file of an interpreter's call; 0 if `address` is one of compiled code. */
u32 interpreted_line(const void *address, const char **file);
int is_in_program(const void *address);
/* Facts (see `finding`) about the place of a call, in `text`: "of_file:…" and "of_line=…" for an interpreter's, else "of_at=[…]",
 * the offsets of the return addresses that are in the program, innermost first. */
const char *place_facts(const char *of, const void *const *frames, int count, char *text, size_t size);
const void *code_address(const void *signal_context);
void overtime_start(void);
/* guard.c: host memory that the program must not touch until the work of `s` is known to be done. */
void guard_start(void);
void guard_copy(const char *function, const struct stream *s, u64 start, u64 bytes, int readable);
void guard_lift(u64 start, u64 bytes);
void guard_settle(const struct stream *waited_for);
int guard_fault(u64 address);
/* pending.c: kernels that the host has not waited for, and copies that do not wait for them. */
void pending_kernel(const struct launch *l);
void pending_copy(const struct stream *s, u64 to, u64 from);
void pending_settle(const struct stream *waited_for); /* NULL: everything */
void pending_event(void);
/* The current call of the runtime API, for reports: each function that may report something sets it. */
extern __thread const void *host_call;
extern __thread const void *interpreted_call; /* the line that an interpreter reported last, or NULL */
#define HOST_CALL() (host_call = interpreted_call ? interpreted_call : __builtin_return_address(0))
u64 now_ns(void);
u64 clock_ns(clockid_t clock);
extern clockid_t limit_clock; /* of time limits: monotonic, or the process's processor time */
void trace_open(void);
void trace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
int trace_enabled(void);
const char *json_string(const char *text, char *buffer, size_t size);
const char *demangle(const char *name);
/* One finding, to the trace: the check that it belongs to, its kind (grader/findings/kinds.py) and its facts, one a line,
 * "name=12" for numbers and "name:text" for words. grader/findings makes sentences of them. `w` may be NULL: the place is
 * then that of host_call. */
void finding(struct warp *w, u32 site, u32 lane, const char *check, const char *kind, const char *facts, ...) __attribute__((format(printf, 6, 7)));

#endif
