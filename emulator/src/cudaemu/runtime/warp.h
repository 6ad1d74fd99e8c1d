/* The machine that translated kernels run on: one warp of 32 lanes as vector code.
 *
 * Theory of operation. A PTX register whose lanes differ is a row of vectors: PIECES vectors of W 32-bit lanes, or twice
 * as many of W/2 64-bit lanes. A register that the translator knows to be the same in all lanes is a C scalar; one that
 * steps evenly from lane to lane is a scalar base and a stride. A predicate is always a 32-bit lane mask. 8- and 16-bit
 * values are stored zero-extended in 32-bit lanes.
 *
 * Every function exists in up to three forms. `linear` assumes that blockDim.x is a multiple of 32, so that threadIdx.x
 * steps by one and y and z are uniform; `general` does not. Both run only while all live lanes are at the same place:
 * `m` is the mask of live lanes, and register writes need no mask because dead lanes' registers are never read. Where
 * lanes part, the `slow` form runs, block by block under a mask, always the lowest-numbered pending block, until all
 * lanes are at the branch's immediate post-dominator (or have left); the fast form then continues there. Lanes that wait
 * in a loop for others of their warp let those others run (apart.c), as do lanes that reach a warp function before
 * others that its mask names (gather.c).
 *
 * Registers are stored in a frame in memory, F, where the slow form finds them. A register that a form knows to be more
 * regular than the general form does has a second place there and is copied when lanes diverge. Between branches,
 * instructions are threaded code: rows of numbers, processed by small functions that similar instructions share
 * (run_rows). Blocks of inner loops are C instead, with their registers in variables from the block's first instruction
 * to its last, so gcc spends its time on the code that takes the program's time. A table says where lanes go at the end of each block
 * (struct way, ways.c).
 *
 * Each warp is a fiber (fiber.c), so a barrier, anywhere in the call tree, is a plain function call that returns when
 * the block's other warps have arrived.
 *
 * Memory accesses carry a site number. A worker thread keeps, for each site, the bounds of the allocation it last
 * touched. An access inside them is a plain load or store; every other access goes to rt_load_… and rt_store_…
 * (access.c), which know all allocations and address windows and report errors.
 */
#ifndef WARP_H
#define WARP_H

#include "vectors.h"

/* ---- the state of a warp --------------------------------------------------------------------------------------- */

struct form;
struct site {
    u64 lo, hi;  /* device addresses [lo, hi) of the allocation last touched here */
    i64 delta;   /* device address + delta = host address */
};

/* The place of a site, for reports. */
struct site_info {
    const char *file;
    u32 line;
    u8 kind; /* enum site_kind */
    u8 bytes;
    u16 order; /* SITE_… of enum site_order */
};
enum site_kind { SITE_LOAD, SITE_STORE, SITE_COPY, SITE_ATOMIC, SITE_BARRIER, SITE_LOOP, SITE_CALL, SITE_OTHER };
enum site_order {
    SITE_STRONG = 1,     /* volatile, relaxed, acquire or release */
    SITE_RELEASES = 2,   /* has release semantics */
    SITE_TOLERANT = 4,   /* an atomic that is commonly combined with plain reads (cas, min, max, and, or) */
    SITE_OVERWRITES = 8, /* an atomic whose new value does not depend on the old one (exch) */
    SITE_ORDERED = 16,   /* has an explicit memory order, so not volatile */
    SITE_ASYNC = 32,     /* by a bulk copy or a product, later than its instruction */
    SITE_OBJECT = 64,    /* to a barrier object */
    SITE_UNNEEDED = 256  /* and the next three bits: words of a load that no instruction uses; the compiler made it wider */
};

/* The loop that a watched warp does not leave (progress.c). */
struct candidate {
    const struct form *form; /* NULL: none yet */
    const u8 *F;
    u64 state; /* a hash of the deciding values at an earlier pass */
    u32 header, latch, site, passes, power, confirmed, events, in_kernel; /* events: how often it or its state has changed */
};

struct warp {
    struct site *sites;
    u8 *shared;
    u8 *local; /* 32 lanes interleaved by 4-byte words: lane l's byte b is local[(b >> 2) * 128 + l * 4 + (b & 3)] */
    const u8 *params;
    u32 shared_size, local_size, local_top;
    u32 fuel;      /* loop iterations until rt_poll */
    u32 polls, watched_edges; /* full polls so far; back edges until progress.c stops watching */
    struct candidate candidate;
    u32 live;      /* lanes of the launch; exited lanes are cleared */
    u32 linear;    /* blockDim.x is a multiple of 32 */
    u32 index;     /* warp in the block */
    u32 ntid[3], ctaid[3], nctaid[3];
    u32 tid0[3];   /* lane 0's threadIdx */
    u32 dynamic_shared, smid;
    u32 reserved;  /* where RESERVED_BYTES for cooperative groups begin, past the kernel's own shared memory */
    u32 step;      /* under --sanitize race, counts the instructions at which lanes wait for each other */
    u32 synced;    /* under --sanitize race, the stamp of the last barrier that it waited at (order.c) */
    u32 early_wait; /* the site + 1 of its last wait at a barrier object if that passed although a copy was under way; else 0 */
    u32 asked_in_vain; /* set by an unsuccessful test or wait, cleared by success and by rt_poll */
    u32 environment[2]; /* %envreg1 and 2: the address of the grid's barrier, for cooperative groups */
    u32 cluster[3], cluster_rank, in_cluster[3]; /* blocks of a cluster in each dimension; this block's rank and position in its cluster */
    u32 is_in_cluster, cluster_phase; /* whether the launch has clusters; the phase in which the warp arrived */
    u32 has_waited; /* it has executed griddepcontrol.wait */
    u32 registers;  /* per thread since setmaxnreg; 0 before it */
    u64 grid_id;
    struct block *block;
    struct wait *waits; /* syncwarp.c: lanes that wait for others; usually NULL */
    u32 *alive;    /* threads of the block that have not exited */
    struct counters *counters;
    struct requests *requests; /* reuse.c; NULL while none are recorded */
    u32 *watch;    /* in a build with `record`, the nodes in its slots (values.c) */
    u32 tid[3][32] __attribute__((aligned(64)));
};

/* Address windows of the generic address space. Device allocations and host memory lie below. */
#define SHARED_WINDOW 0x0100000000000000ull
#define LOCAL_WINDOW 0x0200000000000000ull
#define PARAM_WINDOW 0x0300000000000000ull

#define RESERVED_GAP 65536u /* unused, so that accesses just past the kernel's shared memory are found */
#define RESERVED_BYTES 1024u /* of shared memory, for the system: CUDA C++ Programming Guide, compute capability 8.x */

enum space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM };

/* ---- the runtime's functions for generated code ----------------------------------------------------------------- */

/* Finds the allocation that holds [addr, addr + bytes) and stores its bounds in the site; 0 if there is none. */
int rt_refill(struct warp *w, u32 site, u64 addr, u32 bytes) COLD;
/* Record values of the lanes in m (values.c); rows of the result, then of the operands, or of the values in memory. */
void rt_watch_op(struct warp *w, u32 site, u32 m, u32 count, const u64 *values);
void rt_watch_set(struct warp *w, u32 site, u32 m, u32 count, const u64 *values);
void rt_watch_copy(struct warp *w, u32 site, const u64 *to, const u64 *from, u32 m, u32 whole, const u64 *sizes);
void rt_watch_move(struct warp *w, u32 site, u32 m);
void rt_watch_pick(struct warp *w, u32 site, u32 m, u32 first);
void rt_watch_from(struct warp *w, u32 site, u32 m, const u32 *from);
void rt_watch_pass(struct warp *w, u32 site, u32 m, const u32 *rows);
void rt_watch_take(struct warp *w, u32 site, u32 m, const u32 *rows);
void rt_watch_load(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values);
void rt_watch_store(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values);
void rt_watch_atomic(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values);
/* Loads and stores `count` elements of `bytes` each for every lane in m. Addresses are evenly spaced (_a), or rows of 32
 * (_w) or 64 bits (_q); values are rows, one element after the other, of 32 bits or, for 8-byte elements, of 64. */
void rt_load_a(struct warp *w, u32 site, int space, u64 base, i64 stride, u32 m, u32 bytes, u32 count, void *out);
void rt_load_w(struct warp *w, u32 site, int space, const u32 *addr, u32 m, u32 bytes, u32 count, void *out);
void rt_load_q(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, void *out);
void rt_store_a(struct warp *w, u32 site, int space, u64 base, i64 stride, u32 m, u32 bytes, u32 count, const void *in);
void rt_store_w(struct warp *w, u32 site, int space, const u32 *addr, u32 m, u32 bytes, u32 count, const void *in);
void rt_store_q(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, const void *in);
/* The same for accesses of 8 or 16 bytes in total, which other threads never see half written (whole.c). */
void rt_load_whole(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, void *out);
void rt_store_whole(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u32 bytes, u32 count, const void *in);
/* rt_load_w of 4 words from shared memory, and rt_load_q of 1, 2 or 4, in programs that are not watched (words.c). */
void rt_load_quads(struct warp *w, u32 site, int space, const u32 *addr, u32 m, void *out);
void rt_load_words1(struct warp *w, u32 site, int space, const u64 *addr, u32 m, void *out);
void rt_load_words2(struct warp *w, u32 site, int space, const u64 *addr, u32 m, void *out);
void rt_load_words4(struct warp *w, u32 site, int space, const u64 *addr, u32 m, void *out);
/* The host address of one lane's access; does not return if the access is a fault. */
void *rt_address(struct warp *w, u32 site, int space, u64 addr, u32 lane, u32 bytes) COLD;
void rt_fence(struct warp *w);
/* fence.proxy.async of the lanes m; with `only_objects`, fence.mbarrier_init, which covers only initialised barrier objects. */
void rt_proxy_fence(struct warp *w, u32 m, int only_objects);
/* A __syncwarp() that not all lanes of its mask have reached, or at which other lanes wait. */
void rt_syncwarp(struct warp *w, u32 site, u32 m, u32 members) COLD;
void rt_syncwarp_groups(struct warp *w, u32 site, u32 m, const u32 *members);
void rt_barrier(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes, int aligned);
void rt_barrier_arrive(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes);
u32 rt_barrier_reduce(struct warp *w, u32 site, u32 id, u32 threads, u32 lanes, u32 predicate, int how);
/* A back edge of a loop: the lanes m of a function's form go from the end of block `from` to block `to`. */
struct edge { const struct form *form; u8 *F; u32 m, from, to; int in_kernel; };
void rt_poll(struct warp *w, struct edge e) COLD;
void rt_wait(struct warp *w, struct edge e, u32 inside) COLD;
void rt_trap(struct warp *w, u32 site, u32 m) COLD;
void rt_fault(struct warp *w, u32 site, u32 lane, int code, const char *kind, const char *facts, ...) COLD;
void rt_divided_barrier(struct warp *w, u32 site, u32 m) COLD;
void rt_shuffle_check(struct warp *w, u32 site, u32 m, u32 members) COLD;
u32 rt_vprintf(struct warp *w, u32 lane, u64 format, u64 arguments);
void rt_assert(struct warp *w, u32 lane, u64 message, u64 file, u32 line, u64 function);
u64 rt_malloc(struct warp *w, u32 lane, u64 bytes);
void rt_free(struct warp *w, u32 lane, u64 address);
u32 rt_multiprocessors(void);
u32 grader_change_of_host(void);
u32 rt_shared_bytes(const struct warp *w); /* of the block, without the system's */
u64 rt_clock(void);
u64 rt_nanoseconds(void);
void rt_nanosleep(struct warp *w, u32 ns);
/* setmaxnreg.inc or .dec to `count` registers (registers.c). */
void rt_move_registers(struct warp *w, u32 site, u32 count, int more);
/* griddepcontrol (dependents.c). */
void rt_trigger_dependents(struct warp *w);
void rt_wait_for_prerequisite(struct warp *w);

/* Lanes of a divided warp that may wait for each other (apart.c). */
#define PATIENCE 16u /* iterations of a loop until it is other lanes' turn */
#define WARP_PATIENCE 64u /* until it is other warps' turn; divides the values that fuel is refilled to */
struct apart {
    u32 waiting;  /* lanes that have used up their patience: it is the others' turn */
    u32 held;     /* lanes held where lanes meet, because other participants are missing */
    u32 waited;   /* lanes that have been waiting */
    u32 stuck;    /* lanes that were held when nothing else could run: they continue as if no lane were missing */
    u32 patience; /* of the lanes that run: remaining iterations of a loop */
    u32 turns;
};

/* Warp functions (gather.c). What each lane sees: a row with one value per lane, and the lanes of its group. */
struct together { const u64 *row[32]; u32 group[32]; };
struct gathering {
    u32 offered;  /* lanes that have arrived and not continued */
    u32 complete; /* of these, lanes whose whole mask has arrived */
    u32 members[32], call[32];
    u64 offer[32], seen[32][32];
    struct together together; /* for lanes that may continue */
    u32 asked[32] __attribute__((aligned(64))); /* the masks of arriving lanes */
    u64 brought[32] __attribute__((aligned(64))); /* their values */
};
void rt_check_members(struct warp *w, u32 site, u32 m, const u32 *members) COLD;
void rt_shuffle(const struct together *t, u32 m, const u32 *source, u32 *out) COLD;
void rt_ballot(const struct together *t, u32 m, u32 *out) COLD;
u32 rt_match(const struct together *t, u32 m, int all, u32 *out); /* returns the lanes whose group has equal values */
void rt_reduce_add_u32(const struct together *t, u32 m, u32 *out);
void rt_reduce_min_u32(const struct together *t, u32 m, u32 *out);
void rt_reduce_min_s32(const struct together *t, u32 m, u32 *out);
void rt_reduce_max_u32(const struct together *t, u32 m, u32 *out);
void rt_reduce_max_s32(const struct together *t, u32 m, u32 *out);
void rt_reduce_and_b32(const struct together *t, u32 m, u32 *out);
void rt_reduce_or_b32(const struct together *t, u32 m, u32 *out);
void rt_reduce_xor_b32(const struct together *t, u32 m, u32 *out);

/* Atomics: old values replace vv[0..31]; vv[32..63] are the new values of a compare-and-swap. */
#define ATOMIC(how, type) void rt_atomic_##how##_##type(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv);
#define ATOMICS                                                                                                        \
    ATOMIC(add, u32) ATOMIC(add, s32) ATOMIC(add, u64) ATOMIC(add, s64) ATOMIC(add, f32) ATOMIC(add, f64)              \
    ATOMIC(add, f16) ATOMIC(add, bf16) ATOMIC(add, f16x2) ATOMIC(add, bf16x2)                                          \
    ATOMIC(min, u32) ATOMIC(min, s32) ATOMIC(min, u64) ATOMIC(min, s64)                                                \
    ATOMIC(max, u32) ATOMIC(max, s32) ATOMIC(max, u64) ATOMIC(max, s64)                                                \
    ATOMIC(and, b32) ATOMIC(or, b32) ATOMIC(xor, b32) ATOMIC(and, b64) ATOMIC(or, b64) ATOMIC(xor, b64)                \
    ATOMIC(exch, b32) ATOMIC(exch, b64) ATOMIC(cas, b16) ATOMIC(cas, b32) ATOMIC(cas, b64) ATOMIC(inc, u32) ATOMIC(dec, u32)
ATOMICS
#undef ATOMIC
typedef u32 (*device_function)(struct warp *, u32, u32 **);
device_function rt_function(struct warp *w, u32 site, u32 lane, u64 address, const u32 *sizes, u32 count);

u32 rt_fns(u32 mask, u32 base, u32 offset); /* the offset-th set bit from base on */
u64 rt_alloca(struct warp *w, u32 site, u32 m, const u64 *bytes, u32 align); /* one place in local memory for all lanes */
void rt_stack_restore(struct warp *w, u32 m, u64 top);

/* Matrix instructions (tensor.c, tensor_memory.c). Registers are rows of 32 lanes, with 32 bits or, for doubles, 64. */
enum element {
    ELEMENT_F16, ELEMENT_BF16, ELEMENT_TF32, ELEMENT_E4M3, ELEMENT_E5M2, ELEMENT_S8, ELEMENT_U8, ELEMENT_S4, ELEMENT_U4, ELEMENT_B1,
    ELEMENT_F32, ELEMENT_S32, ELEMENT_F64
};
enum mma_flag { MMA_SATURATE = 1, MMA_AND = 2, MMA_SPARSE = 4, MMA_NEGATE_A = 8, MMA_NEGATE_B = 16, MMA_GROUP = 32 };
struct mma { u32 architecture, m, n, k; int a, b, c, d; u32 flags; }; /* D = A B + C: the GPU's architecture, shape, types */
void rt_mma(struct mma how, const u32 *a, const u32 *b, const u32 *c, u32 *d, const u32 *metadata, u32 selector);
void rt_mma_quads(struct mma how, int a_by_columns, int b_by_rows, const u32 *a, const u32 *b, const u32 *c, u32 *d);
void rt_mma_f64(struct mma how, const u64 *a, const u64 *b, const u64 *c, u64 *d);
void rt_movmatrix(const u32 *in, u32 *out);
/* B is transposed here: its rows have length k, as A's have. `adjacent`: elements of different rows are contiguous. */
struct wmma { u32 rows, columns; int element, accumulator, adjacent; };
void rt_wmma_load(struct warp *w, u32 site, int space, u64 base, u32 stride, struct wmma how, u32 registers, void *out);
void rt_wmma_store(struct warp *w, u32 site, int space, u64 base, u32 stride, struct wmma how, u32 registers, const void *in);
void rt_ldmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, u32 *out);
void rt_stmatrix(struct warp *w, u32 site, int space, const u64 *addr, u32 count, int transposed, const u32 *in);

/* Asynchronous copies (copies.c) of `size` bytes per lane, of which `amount` come from the source and the rest are
 * zeros. After a wait, only each lane's newest `pending` committed groups are still in flight. */
void rt_copy_async(struct warp *w, u32 load_site, u32 store_site, const u64 *to, const u64 *from, const u32 *amount, u32 size, u32 m);
void rt_copy_commit(struct warp *w, u32 m);
void rt_copy_wait(struct warp *w, u32 pending, u32 m);
void rt_copy_arrive_all(struct warp *w, u32 m); /* including copies without a group */

/* Bulk copies (bulk.c). They complete at the barrier objects at `object`, or in the lanes' bulk groups if that is NULL.
 * `blocks` is NULL, or has for each lane a mask of the cluster's blocks that receive the bytes. */
enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_INC, REDUCE_DEC, REDUCE_AND, REDUCE_OR, REDUCE_XOR };
struct bulk_copy { int to, from, reduction, type; }; /* to, from: spaces; type: CUtensorMapDataType */
void rt_bulk_copy(struct warp *w, u32 load_site, u32 store_site, struct bulk_copy how, const u64 *to, const u64 *from, const u32 *bytes, const u64 *object, const u32 *blocks, u32 m);
/* Copies a box of a tensor, or a column of its pixels. `map` has the addresses of tensor maps; `at` has a row of 32 coordinates
 * for each dimension, then a row for each of the pixels' offsets. The copy is from shared to global memory if `object` is NULL,
 * otherwise from global to shared memory. */
struct box_copy { u32 dimensions, by_pixels, offsets; int reduction; };
void rt_bulk_tensor(struct warp *w, u32 load_site, u32 store_site, struct box_copy how, const u64 *shared, const u64 *map, const u32 *at, const u64 *object, const u32 *blocks, u32 m);
/* st.async and red.async of `count` elements of `size` bytes; `values` has a row for each element. */
void rt_send(struct warp *w, u32 site, struct bulk_copy how, u32 size, u32 count, const u64 *to, const u64 *object, const u64 *values, u32 m);
void rt_bulk_commit(struct warp *w, u32 m);
void rt_bulk_wait(struct warp *w, u32 pending, int only_read, u32 m);

/* Products of warpgroups (wgmma.c). Operands A and B are descriptors of matrices in shared memory; A may be in 4 registers
 * instead. `sums` numbers the accumulators of a kernel. */
enum { WGMMA_A_BY_COLUMNS = 1, WGMMA_B_BY_COLUMNS = 2, WGMMA_ADDS = 4 }; /* by columns: the other dimension is contiguous, not k */
struct wgmma_operands { u64 a, b; const u32 *registers; u32 how; };
/* The place to copy accumulators' registers to if none of their products is in flight; else NULL. */
u32 *rt_wgmma_sums(struct warp *w, u32 sums, u32 registers);
void rt_wgmma(struct warp *w, u32 site, struct mma how, u32 sums, struct wgmma_operands operands);
void rt_wgmma_fence(struct warp *w);
void rt_wgmma_commit(struct warp *w);
/* Called where registers of the product at the site `product` are used. how: 0 its sums are read, 1 its sums are written, 2
 * registers of its A are written. */
void rt_wgmma_touched(struct warp *w, u32 site, u32 product, int how);
/* Called for the product at `site` if the instruction at `writer` wrote its registers without a fence in between. */
void rt_wgmma_unfenced(struct warp *w, u32 site, u32 writer);
void rt_wgmma_wait(struct warp *w, u32 pending);
/* The results of accumulators if their products have become complete since the last call; else NULL. */
const u32 *rt_wgmma_result(struct warp *w, u32 sums);

/* Barriers of a cluster (cluster.c). */
void rt_cluster_arrive(struct warp *w, u32 m);
void rt_cluster_wait(struct warp *w, u32 site);
/* Addresses of shared memory in a cluster: bits 24 and up are the block's rank + 1, or 0 for the thread's own block. */
#define CLUSTER_OFFSET 0xffffffu

/* Video instructions (video.c). */
struct video_part { u8 shift, bits; };
struct video {
    u32 what, second; /* VIDEO_… */
    u8 parts;         /* 1, 2 or 4 parts computed side by side; pick_a and pick_b choose them from a and b together */
    u8 d_signed, a_signed, b_signed, saturates, wraps, compare, accumulates, mask, plus_one, negate_product, negate_third, scale;
    struct video_part d, a, b; /* of scalar instructions */
    u8 pick_a[4], pick_b[4];
};
enum { VIDEO_ADD, VIDEO_SUB, VIDEO_ABSDIFF, VIDEO_MIN, VIDEO_MAX, VIDEO_AVRG, VIDEO_SHL, VIDEO_SHR, VIDEO_SET, VIDEO_MAD };
u32 rt_video_lane(const struct video *v, u32 a, u32 b, u32 c);
void rt_video(const struct video *v, u32 m, const u32 *a, const u32 *b, const u32 *c, u32 *out);

/* Barrier objects (mbarrier.c). An arrival's vv holds the number of arrivals and receives the token. A test returns the
 * lanes whose phase is complete; vv holds its token or parity. */
void rt_mbarrier_init(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *count);
void rt_mbarrier_invalidate(struct warp *w, u32 site, int space, const u64 *addr, u32 m);
/* Makes the phase wait for `bytes` more; with `completes`, these bytes have arrived (complete_tx). */
void rt_mbarrier_expect(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *bytes, int completes);
void rt_mbarrier_arrive(struct warp *w, u32 site, int space, const u64 *addr, u32 m, u64 *vv, int drops);
u32 rt_mbarrier_test(struct warp *w, u32 site, int space, const u64 *addr, u32 m, const u64 *vv, int parity);

/* Textures and surfaces (textures.c). `geometry` is the number of dimensions, plus LAYERED. Coordinates are rows, and so are the
 * four channels. A `channel` >= 0 gathers that channel of four texels. Values of a surface access are rows of 64 bits. */
#define LAYERED 4
enum bounds { BOUNDS_TRAP, BOUNDS_CLAMP, BOUNDS_ZERO };
void rt_texture(struct warp *w, u32 site, u32 m, int geometry, int is_float, int channel, const u64 *object, const u32 *at, u32 *out);
void rt_surface(struct warp *w, u32 site, u32 m, int geometry, int bounds, int stores, u32 bytes, u32 count, const u64 *object, const u32 *at, u64 *values);
void rt_texture_query(struct warp *w, u32 site, u32 m, int what, const u64 *object, u32 *answer);

INLINE void lanes_exit(struct warp *w, u32 gone) {
    w->live &= ~gone;
    *w->alive -= (u32)__builtin_popcount(gone);
}

#include "ways.h"
#include "math.h.inc"
#include "fp8.h.inc"
#include "access.h.inc"
#include "lanes.h.inc"
#include "steps.h.inc"

#endif
