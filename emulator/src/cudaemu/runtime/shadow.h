/* The facts kept about each word (shadow.c), and one access to it, for the files that watch accesses. */
#ifndef SHADOW_H
#define SHADOW_H

#include "emu.h"

struct record {
    u32 stamp; /* the phase; 0: never */
    u32 at;    /* site << 10 | thread of the block */
};
struct cell {
    struct record write, update, read, far_read; /* far_read: the last read by a warp or block other than that of `read` */
    u16 write_step : 12, write_bytes : 4; /* the warp's `step`; the bytes of the word */
    u16 update_step : 12, update_bytes : 4;
    u16 read_step : 12, read_bytes : 4;
    u16 readers : 4;     /* readers in addition to the remembered one: READERS_… */
    u16 initialised : 4; /* shared memory: bytes that some thread has written */
    u16 under_way : 1;   /* shared memory: `write` is an asynchronous copy in flight; these copy whole words */
    u16 unfenced : 1;    /* shared memory: `write` is an ordinary store that no proxy fence has covered */
    u16 is_read : 1;     /* shared memory: an asynchronous operation may still read it (proxies.c) */
    u16 swizzle : 4;     /* shared memory: chunks of the swizzle with which a tensor copy wrote it; 0: something else did */
    u16 raced : 1;       /* a read of it and a later write have been reported as a race */
};
_Static_assert(sizeof(struct cell) == 40, "a cell takes ten times its word");
enum { READERS_OTHER_LANE = 1, READERS_OTHER_WARP = 2, READERS_OTHER_BLOCK = 4 };
#define STEPS 0xfffu

struct access {
    struct warp *w;
    const struct site_info *sites;
    u32 site, thread, stamp;
    u64 addr;
    struct allocation *allocation; /* NULL: shared memory */
    struct block *whose;           /* the block whose shared memory is accessed */
    u16 step;
    u8 bytes; /* of the current word */
    const char *does;
    int writes, reads, atomic, same_value;
};

const char *word_for(const struct site_info *s);
void place_of(const struct access *x, u64 addr, char *text, size_t size);
/* Facts about a race: what each side does, where the other side is, and what the place is. */
void race_facts(const struct access *x, u64 addr, const struct site_info *other, char *text, size_t size);
void remember_read(const struct access *x, struct cell *c);
void remember_write(const struct access *x, struct cell *c);

/* ---- proxies.c ------------------------------------------------------------------------------------------------------ */

/* Reports an access to a word to which a copy is under way. */
void report_under_way(const struct access *x, const struct cell *c, u64 addr);
/* For a read by an asynchronous operation, a plain store, and a write to a word that such an operation may still read. */
void asynchronous_read(const struct access *x, struct cell *c, u64 addr);
void plain_store(const struct access *x, struct cell *c, u64 addr);
void check_readers(const struct access *x, struct cell *c, u64 addr);

#endif
