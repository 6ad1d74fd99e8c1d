/* The counters of a program that is built to count. Included by generated code and by counters.c.
 *
 * Theory of operation. The translator splits each function into slots: stretches of code that a warp runs through without
 * gaining or losing lanes (a basic block; the rest of it after a call; a single instruction under a predicate). The
 * content of a slot is known at build time (struct slot_info), so a run only counts how often each slot was entered and
 * with how many lanes. Branches where lanes diverge, and loads and stores, whose cost depends on the lanes' addresses,
 * call a function. Each worker thread has its own counters, which are added up when a launch ends.
 *
 * A request is one load or store instruction of one warp. On every architecture from sm_70 on, it takes
 *
 *   in global and local memory    the 32-byte sectors that its lanes touch, each once;
 *   in shared memory              wavefronts: each reads one word from each of 32 banks of 4 bytes, for any number
 *                                 of lanes.
 *
 * With 8 bytes per lane the half-warps are served one after the other, with 16 bytes per lane the quarter-warps. Two
 * half-warps, or the two quarters of a half, share a wavefront if each lane reads what its neighbour reads (lane ^ 1 in
 * all pairs, or lane ^ 2 in all): so a broadcast of a float4 takes two wavefronts, as on an H200. Each
 * wavefront of such a group beyond its first is a bank conflict. */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "warp.h"

enum instruction_class {
    CLASS_INTEGER, CLASS_FP32, CLASS_FP64, CLASS_FP16, CLASS_TENSOR, CLASS_CONVERSION, CLASS_MEMORY, CLASS_CONTROL, CLASS_BARRIER,
    CLASS_INTER_THREAD, CLASS_MISC, CLASSES
};
enum precision { PRECISION_HALF, PRECISION_SINGLE, PRECISION_DOUBLE, PRECISIONS };
enum operation { OPERATION_ADD, OPERATION_MUL, OPERATION_FMA, OPERATION_SPECIAL, OPERATIONS }; /* an fma counts as one operation */

/* Instructions of a slot by class: `issued` by the warp, `done` by its lanes. A predicated instruction counts as issued in
 * its block's slot and as done in a slot of its own, which only the lanes with a true predicate enter. */
struct slot_info {
    u16 issued[CLASSES], done[CLASSES];
    u16 operations[PRECISIONS][OPERATIONS]; /* arithmetic operations of one lane */
    u16 branches;                           /* conditional branches */
    u32 tensor_operations;                  /* additions and multiplications of the warp's matrix instructions */
    const char *symbol;                     /* of its function; "" for a predicated instruction's slot */
    u32 first, last;                        /* the PTX lines of its instructions, as ptxas counts them */
};

enum access_kind { ACCESS_LOAD, ACCESS_STORE, ACCESS_ATOMIC, ACCESS_REDUCTION, ACCESS_COPY_FROM, ACCESS_COPY_TO, ACCESS_KINDS };
struct place { u32 file, line; }; /* file: an index into module_info.files */
struct access_info { struct place at; u8 kind, bytes; /* of one lane */ u32 ptx_line; };

/* The tables of a module. */
struct counting {
    const struct slot_info *slots;
    u32 slot_count;
    const struct access_info *accesses;
    u32 access_count;
    const struct place *branches; /* those where lanes may part */
    u32 branch_count;
};

struct slot_count { u64 entered, lanes; };
struct branch_count { u64 reached, parted; };

enum target { TARGET_GLOBAL, TARGET_SHARED, TARGET_LOCAL, TARGETS };
#define STRIDE_IRREGULAR INT64_MIN
/* Counters of one access in one space. `units` are sectors or wavefronts, `excess` those beyond what the lanes' bytes
 * need. For atomics in shared memory `units` are lanes that had to wait for another lane with the same address. `worst` is
 * the largest number of units of one request, `stride` that request's distance from lane to lane in bytes. */
struct access_count { u64 requests, lanes, units, excess; u32 worst; i64 stride; };
/* The last evenly spaced request of an access, and how often it has been repeated. A request's cost depends only on its
 * start within a word (in global memory, a sector), the spacing of its lanes, and which of them take part: moving it by
 * a word only permutes banks. */
struct pattern { u64 phase; i64 stride; u32 lanes, units, excess; enum target target; u64 repeats; };
#define PHASE(space, base) ((base) % ((space) == SPACE_GLOBAL ? 32 : 4))

/* The work of Hopper's asynchronous instructions. MULTICAST_BYTES are those that a multicast brings to blocks beyond the
 * first. WAITS are tests of barrier objects that succeed in all lanes. STAGES is a maximum: the number of a block's
 * barrier objects at which copies under way complete. */
enum async_count {
    ASYNC_PRODUCTS, ASYNC_PRODUCTS_FROM_REGISTERS, ASYNC_LOADS, ASYNC_LOAD_BYTES, ASYNC_STORE_BYTES, ASYNC_MULTICAST_BYTES,
    ASYNC_WAITS, ASYNC_STAGES, ASYNC_COUNTS
};

/* How many lines were used between two uses of a sector, in powers of two: near[0] none, near[i] fewer than 2^i, the last
 * never before. `array`: the allocation that the first of the recorded requests used. */
#define REUSE_BUCKETS 18u
struct reuse { u64 near[REUSE_BUCKETS], array, array_bytes; };
struct block;
void requests_start(struct block *b, u32 accesses);
void requests_add(struct warp *w, u32 access, const u64 *addr, u32 m);
void requests_end(struct block *b, struct reuse *reuse);

struct counters {
    const struct counting *tables;
    u64 async[ASYNC_COUNTS];
    struct slot_count *slots;
    struct branch_count *branches;
    struct access_count (*accesses)[TARGETS];
    struct pattern *patterns;
};

#define COUNT_SLOT(w, slot, m)                                                                                         \
    do {                                                                                                               \
        struct slot_count *const c_ = &(w)->counters->slots[slot];                                                     \
        c_->entered++, c_->lanes += (u32)__builtin_popcount(m);                                                        \
    } while (0)
#define COUNT_BRANCH(w, branch, go, m)                                                                                 \
    do {                                                                                                               \
        struct branch_count *const c_ = &(w)->counters->branches[branch];                                              \
        c_->reached++, c_->parted += (go) != 0 && (go) != (m);                                                         \
    } while (0)
INLINE void count_async(struct warp *w, enum async_count what, u64 n) {
    if (!w->counters) return;
    u64 *const count = &w->counters->async[what];
    *count = what == ASYNC_STAGES ? (n > *count ? n : *count) : *count + n;
}
void rt_count_switch(struct warp *w, u32 branch, const u32 *index, u32 m);

/* Count one request of the lanes m. The suffixes are those of rt_load_…: _a, _w, _q. */
void rt_count_a(struct warp *w, u32 access, int space, u64 base, i64 stride, u32 m) COLD;
void rt_count_w(struct warp *w, u32 access, int space, const u32 *addr, u32 m);
void rt_count_q(struct warp *w, u32 access, int space, const u64 *addr, u32 m);
INLINE void count_a(struct warp *w, u32 access, int space, u64 base, i64 stride, u32 m) {
    struct pattern *const p = &w->counters->patterns[access];
    if (LIKELY(p->phase == PHASE(space, base) && p->stride == stride && p->lanes == m && !w->requests)) p->repeats++;
    else rt_count_a(w, access, space, base, stride, m);
}
#define count_w rt_count_w
#define count_q rt_count_q
/* Count one asynchronous copy: the accesses `from` global memory and `to` shared memory. */
void rt_count_copy(struct warp *w, u32 from, u32 to, const u64 *source, const u64 *target, u32 m);
/* Count ldmatrix or stmatrix of `count` matrices: lanes 8 j .. 8 j + 7 name the rows of matrix j. */
void rt_count_matrix(struct warp *w, u32 access, const u64 *addr, u32 count);

#endif
