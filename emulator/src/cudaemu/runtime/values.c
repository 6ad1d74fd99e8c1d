/* Where values come from (a build with `record`): a graph of what each thread computed, for grader/checking/watch.
 *
 * Theory of operation
 *
 *   translate/watching.py lets every instruction that computes, moves, loads or stores a float call a function here.
 *   Each value becomes a node: the instruction's site, up to three operands (nodes with smaller numbers), its number,
 *   its thread. A warp has a slot for each register that holds floats, with the nodes of its 32 lanes. A hash table
 *   holds, for each word of memory, the node of the value that was stored there last. A word that no kernel wrote gives
 *   a leaf with its address; an operand that is no float's result gives a constant.
 *
 *   When bytes are copied to the host, their nodes are kept as the program's results. At the end the nodes from which
 *   the results named in GRADER_EMULATOR_WATCHED come are written to the file descriptor in GRADER_EMULATOR_WATCH. Each
 *   is INDEX:BITS, a place in the output file in words and the wrong value that was found there; a program may arrange
 *   its results on the host, then the value alone finds it.
 *
 *   Without GRADER_EMULATOR_WATCH nothing is recorded. Recording ends after MOST_NODES; what is written then lacks the
 *   later values. Launches of programs with sanitizers run on one worker, so there are no locks. */

#define _GNU_SOURCE
#include "schedule.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_NODES (32u << 20)
#define MOST_WRITTEN (10u << 20)
#define MOST_RESULTS (16u << 20)
#define MOST_WANTED 64
#define NO_SLOT 0xffffffffu
enum { CONSTANT = 0xffffffffu, LEAF = 0xfffffffeu };
enum { WATCHED_ADDITION = 18 }; /* OPERATIONS in translate/watching.py */

struct node {
    u32 site, a, b, c; /* of a leaf: its address in a (low) and b (high), the loading site in c */
    float value;
    u32 thread; /* block << 10 | thread */
};
static struct node *nodes;
static u32 node_count = 1; /* 0: no node */
static int descriptor = -1;
int values_on;

/* ---- modules: sites of all modules are numbered in one row --------------------------------------------------------- */

static const struct module_info *modules[64];
static u32 first_site[65];
static u32 module_count;

static u32 base_of(const struct module_info *info) {
    for (u32 i = 0; i < module_count; i++)
        if (modules[i] == info) return first_site[i];
    if (module_count == 64) return 0;
    modules[module_count] = info;
    first_site[module_count + 1] = first_site[module_count] + info->watch_count;
    return first_site[module_count++];
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

struct cell {
    u64 key;
    u32 node, load_site, load_node;
};
static struct cell *cells;
static u64 cell_count, cell_capacity;

static struct cell *cell_at(u64 key) {
    if (2 * cell_count >= cell_capacity) {
        struct cell *old = cells;
        u64 many = cell_capacity;
        cell_capacity = many ? 4 * many : 1 << 16;
        cells = calloc(cell_capacity, sizeof *cells);
        for (u64 i = 0; i < many; i++) {
            if (!old[i].key) continue;
            u64 at = old[i].key * 0x9e3779b97f4a7c15ull >> 20;
            while (cells[at % cell_capacity].key) at++;
            cells[at % cell_capacity] = old[i];
        }
        free(old);
    }
    for (u64 at = key * 0x9e3779b97f4a7c15ull >> 20;; at++) {
        struct cell *c = &cells[at % cell_capacity];
        if (c->key == key) return c;
        if (!c->key) {
            c->key = key, cell_count++;
            return c;
        }
    }
}

static u64 block_serial(const struct warp *w) { return (w->grid_id * 0x100001ull + w->block->index + 1) & 0xffffffffull; }

/* A number for a word of memory, different for the shared memory of different blocks and the local memory of threads. */
static u64 key_of(const struct warp *w, int space, u64 address, u32 lane) {
    if (space == SPACE_GENERIC && address >= LOCAL_WINDOW && address < PARAM_WINDOW) space = SPACE_LOCAL, address -= LOCAL_WINDOW;
    else if (space == SPACE_GENERIC && address >= SHARED_WINDOW && address < LOCAL_WINDOW) space = SPACE_SHARED, address -= SHARED_WINDOW;
    if (space == SPACE_SHARED) return 1ull << 62 | block_serial(w) << 24 | (address & 0xffffff);
    if (space == SPACE_LOCAL) return 1ull << 63 | ((block_serial(w) * 1024 + w->index * 32 + lane) & 0xffffffffffull) << 20 | (address & 0xfffff);
    return (address & 0xffffffffffffull) | 1ull << 61;
}
static u64 global_key(const void *p) { return ((u64)p & 0xffffffffffffull) | 1ull << 61; }

/* ---- nodes --------------------------------------------------------------------------------------------------------------- */

static u32 add_node(u32 site, u32 a, u32 b, u32 c, float value, u32 thread) {
    if (node_count >= MOST_NODES) return 0;
    nodes[node_count] = (struct node){site, a, b, c, value, thread};
    return node_count++;
}

static u32 *slots_of(struct warp *w) {
    const struct module_info *info = w->block->launch->module->info;
    if (!w->watch) w->watch = calloc((u64)info->watch_slots * 32 + 1, 4);
    return w->watch;
}
static u32 who(const struct warp *w, u32 lane) { return (u32)w->block->index << 10 | (w->index * 32 + lane); }
static float as_float(u64 bits, u32 bytes) {
    if (bytes == 8) {
        double d;
        memcpy(&d, &bits, 8);
        return (float)d;
    }
    float f;
    u32 low = (u32)bits;
    memcpy(&f, &low, 4);
    return f;
}

#define BEGIN                                                          \
    if (!values_on) return;                                        \
    const struct module_info *info = w->block->launch->module->info;   \
    const struct watch_site *s = &info->watch[site];                   \
    u32 *const ids = slots_of(w);                                      \
    (void)s, (void)ids;
#define LANES(lane) for (u32 lane = 0; lane < 32; lane++) if (m >> lane & 1)

static u32 operand(u32 *ids, u32 slot, u32 lane, u64 bits, u32 bytes) {
    u32 id = slot == NO_SLOT ? 0 : ids[slot * 32 + lane];
    if (!id) id = add_node(CONSTANT, 0, 0, 0, as_float(bits, bytes), 0);
    if (slot != NO_SLOT) ids[slot * 32 + lane] = id;
    return id;
}

void rt_watch_op(struct warp *w, u32 site, u32 m, u32 count, const u64 *values) {
    BEGIN
    u32 number = base_of(info) + site;
    LANES(lane) {
        u32 of[3] = {0};
        for (u32 k = 1; k < count && k < 4; k++) of[k - 1] = operand(ids, s->sources[k - 1], lane, values[32 * k + lane], s->bytes);
        ids[s->results[0] * 32 + lane] = add_node(number, of[0], of[1], of[2], as_float(values[lane], s->bytes), who(w, lane));
    }
}

void rt_watch_set(struct warp *w, u32 site, u32 m, u32 count, const u64 *values) {
    BEGIN
    (void)count;
    LANES(lane) ids[s->results[0] * 32 + lane] = add_node(CONSTANT, 0, 0, 0, as_float(values[lane], s->bytes), who(w, lane));
}

void rt_watch_move(struct warp *w, u32 site, u32 m) {
    BEGIN
    LANES(lane) ids[s->results[0] * 32 + lane] = s->sources[0] == NO_SLOT ? 0 : ids[s->sources[0] * 32 + lane];
}

void rt_watch_pick(struct warp *w, u32 site, u32 m, u32 first) {
    BEGIN
    LANES(lane) {
        u32 slot = s->sources[first >> lane & 1 ? 0 : 1];
        ids[s->results[0] * 32 + lane] = slot == NO_SLOT ? 0 : ids[slot * 32 + lane];
    }
}

void rt_watch_from(struct warp *w, u32 site, u32 m, const u32 *from) {
    BEGIN
    u32 got[32];
    LANES(lane) got[lane] = s->sources[0] == NO_SLOT ? 0 : ids[s->sources[0] * 32 + (from[lane] & 31)];
    LANES(lane) ids[s->results[0] * 32 + lane] = got[lane];
}

/* Arguments and results of calls are in rows of 32 words (translate/calls.py): they keep their nodes on the way. */
void rt_watch_pass(struct warp *w, u32 site, u32 m, const u32 *rows) {
    BEGIN
    for (u32 k = 0; k < 4; k++) {
        if (s->sources[k] == NO_SLOT) continue;
        LANES(lane) cell_at(global_key(rows + 32 * k + lane))->node = ids[s->sources[k] * 32 + lane];
    }
}

void rt_watch_take(struct warp *w, u32 site, u32 m, const u32 *rows) {
    BEGIN
    for (u32 k = 0; k < 4; k++) {
        if (s->results[k] == NO_SLOT) continue;
        LANES(lane) {
            u32 word = rows[32 * k + lane], id = cell_at(global_key(rows + 32 * k + lane))->node;
            if (id && memcmp(&nodes[id].value, &word, 4)) id = 0; /* of an earlier call: this argument is no float's result */
            ids[s->results[k] * 32 + lane] = id ? id : add_node(CONSTANT, 0, 0, 0, as_float(word, 4), who(w, lane));
        }
    }
}

void rt_watch_load(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values) {
    BEGIN
    u32 number = base_of(info) + site;
    for (u32 k = 0; k < count && k < 4; k++) {
        if (s->bytes == 16) {
            if (s->results[k] != NO_SLOT) LANES(lane) ids[s->results[k] * 32 + lane] = 0;
            continue;
        }
        if (s->results[k] == NO_SLOT) continue;
        LANES(lane) {
            u64 at = addresses[lane] + k * s->bytes;
            struct cell *c = cell_at(key_of(w, space, at, lane));
            float value = as_float(values[32 * k + lane], s->bytes);
            if (!c->node) c->node = add_node(LEAF, (u32)at, (u32)(at >> 32), number, value, who(w, lane)), c->load_node = 0;
            if (!c->load_node || c->load_site != number) c->load_site = number, c->load_node = add_node(number, c->node, 0, 0, value, who(w, lane));
            ids[s->results[k] * 32 + lane] = c->load_node;
        }
    }
}

void rt_watch_store(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values) {
    BEGIN
    u32 number = base_of(info) + site;
    if (s->bytes == 16) { /* two words as an integer */
        for (u32 k = 0; k < 2 * count; k++)
            LANES(lane) cell_at(key_of(w, space, addresses[lane] + 4 * k, lane))->node = 0;
        return;
    }
    for (u32 k = 0; k < count && k < 4; k++)
        LANES(lane) {
            struct cell *c = cell_at(key_of(w, space, addresses[lane] + k * s->bytes, lane));
            u32 id = s->bytes < 4 ? 0 : s->sources[k] == NO_SLOT ? 0 : ids[s->sources[k] * 32 + lane];
            u64 bits = values[32 * k + lane];
            if (!id && s->bytes >= 4) id = add_node(CONSTANT, 0, 0, 0, as_float(bits, s->bytes), 0);
            c->node = id ? add_node(number, id, 0, 0, as_float(bits, s->bytes), who(w, lane)) : 0, c->load_node = 0;
        }
}

/* cp.async: `whole` bytes at `to`, of which the first `sizes` are those at `from`, the others zeros. */
void rt_watch_copy(struct warp *w, u32 site, const u64 *to, const u64 *from, u32 m, u32 whole, const u64 *sizes) {
    BEGIN
    u32 number = base_of(info) + site;
    LANES(lane)
        for (u32 i = 0; i < whole; i += 4) {
            u32 id = 0;
            float value = 0;
            if (i < sizes[lane]) {
                const void *p = memory_host(from[lane] + i);
                if (p) memcpy(&value, p, 4);
                struct cell *c = cell_at(key_of(w, SPACE_GLOBAL, from[lane] + i, lane));
                if (!c->node && p) c->node = add_node(LEAF, (u32)(from[lane] + i), (u32)((from[lane] + i) >> 32), number, value, who(w, lane)), c->load_node = 0;
                id = c->node;
            }
            struct cell *c = cell_at(key_of(w, SPACE_SHARED, to[lane] + i, lane));
            c->node = id ? add_node(number, id, 0, 0, value, who(w, lane)) : 0, c->load_node = 0;
        }
}

void rt_watch_atomic(struct warp *w, u32 site, int space, const u64 *addresses, u32 m, u32 count, const u64 *values) {
    BEGIN
    (void)count;
    u32 number = base_of(info) + site;
    LANES(lane) {
        struct cell *c = cell_at(key_of(w, space, addresses[lane], lane));
        u32 old = c->node;
        c->node = c->load_node = 0;
        if (s->operation != WATCHED_ADDITION) { /* of a number that is no float, only what it left is known */
            const void *p = s->bytes == 4 && space != SPACE_SHARED ? memory_host(addresses[lane]) : NULL;
            float left = 0;
            if (p) memcpy(&left, p, 4);
            if (p && old && !memcmp(&nodes[old].value, &left, 4)) c->node = old;
            else if (p) c->node = add_node(number, 0, 0, 0, left, who(w, lane));
            continue;
        }
        u32 id = operand(ids, s->sources[0], lane, values[lane], s->bytes);
        float before = old ? nodes[old].value : 0;
        c->node = add_node(number, old, id, 0, before + nodes[id].value, who(w, lane));
    }
}

/* ---- the host ------------------------------------------------------------------------------------------------------------- */

static u32 *results;
static u32 result_count;

void values_written(const void *to, u64 bytes) {
    if (!values_on || !cell_count) return;
    for (u64 i = 0; i < bytes; i += 4) {
        struct cell *c = cell_at(global_key((const u8 *)to + i));
        c->node = c->load_node = 0;
    }
}

void values_copied(const void *to, const void *from, u64 bytes, int to_host) {
    if (!values_on) return;
    if (to_host && !results) results = (u32 *)map_pages((u64)MOST_RESULTS * 4);
    for (u64 i = 0; i < bytes; i += 4) {
        struct cell old = *cell_at(global_key((const u8 *)from + i));
        if (!to_host) {
            struct cell *c = cell_at(global_key((const u8 *)to + i));
            c->node = old.node, c->load_node = 0;
        } else if (result_count < MOST_RESULTS) results[result_count++] = old.node;
    }
}

void values_end_warp(struct warp *w) {
    free(w->watch);
    w->watch = NULL;
}

/* ---- the recording ------------------------------------------------------------------------------------------------------- */

static void put(const void *bytes, u64 count) {
    for (u64 done = 0; done < count && descriptor >= 0;) {
        ssize_t n = write(descriptor, (const u8 *)bytes + done, count - done);
        if (n <= 0) return;
        done += (u64)n;
    }
}

static u32 root_of(u32 index, u32 bits, u64 output_words) {
    u32 value;
    if (result_count >= output_words && index < output_words) { /* what is copied before the output is not the output */
        u32 node = results[result_count - output_words + index];
        memcpy(&value, &nodes[node].value, 4);
        if (value == bits || (!node && result_count == output_words)) return node;
    }
    for (u32 i = 0; i < result_count; i++) {
        memcpy(&value, &nodes[results[i]].value, 4);
        if (results[i] && value == bits) return results[i];
    }
    return 0;
}

/* The file: a head (magic, words of output, results copied, whether recording was cut off, numbers of roots, sites and
 * nodes, 0), roots, sites, nodes in the order in which they were computed, names of files. */
void values_finish(void) {
    const char *wanted = getenv("GRADER_EMULATOR_WATCHED");
    if (!values_on || !wanted) return;
    values_on = 0;
    u64 output_words = strtoull(wanted, (char **)&wanted, 10);
    u32 roots[MOST_WANTED], root_count = 0;
    while (*wanted == ',' && root_count < MOST_WANTED) {
        u32 index = (u32)strtoul(wanted + 1, (char **)&wanted, 10), bits = 0;
        if (*wanted == ':') bits = (u32)strtoul(wanted + 1, (char **)&wanted, 16);
        roots[root_count++] = root_of(index, bits, output_words);
    }
    u8 *needed = map_pages(node_count + 1);
    for (u32 i = 0; i < root_count; i++) needed[roots[i]] = 1;
    u32 kept = 0;
    for (u32 i = node_count - 1; i > 0; i--) {
        if (!needed[i]) continue;
        if (++kept > MOST_WRITTEN) break;
        if (nodes[i].site < LEAF) needed[nodes[i].a] = needed[nodes[i].b] = needed[nodes[i].c] = 1;
    }
    u32 head[8] = {0x48435457, (u32)output_words, result_count, node_count >= MOST_NODES || kept > MOST_WRITTEN, root_count, first_site[module_count], kept, 0};
    struct node *rows = (struct node *)map_pages((u64)(kept + 1) * sizeof *rows);
    u32 *const place = (u32 *)map_pages((u64)node_count * 4), n = 0; /* new numbers */
    for (u32 i = 1; i < node_count && n < kept; i++) {
        if (!needed[i]) continue;
        struct node *row = &rows[n];
        *row = nodes[i];
        if (row->site < LEAF) row->a = place[row->a], row->b = place[row->b], row->c = place[row->c];
        place[i] = ++n;
    }
    for (u32 i = 0; i < root_count; i++) roots[i] = place[roots[i]];
    put(head, sizeof head);
    put(roots, root_count * 4);
    for (u32 i = 0; i < module_count; i++)
        for (u32 k = 0; k < modules[i]->watch_count; k++) {
            const struct watch_site *s = &modules[i]->watch[k];
            u32 row[3] = {s->operation, s->file | i << 16, s->line};
            put(row, sizeof row);
        }
    put(rows, n * sizeof *rows);
    for (u32 i = 0; i < module_count; i++) {
        u32 most = 0;
        for (u32 k = 0; k < modules[i]->watch_count; k++) most = modules[i]->watch[k].file > most ? modules[i]->watch[k].file : most;
        for (u32 f = 0; f <= most && modules[i]->watch_count; f++) {
            char line[1200];
            int length = snprintf(line, sizeof line, "%u %s\n", f | i << 16, modules[i]->files[f]);
            put(line, (u64)length < sizeof line ? (u64)length : sizeof line - 1);
        }
    }
}

void values_start(void) {
    const char *where = getenv("GRADER_EMULATOR_WATCH");
    if (!where || !*where) return;
    descriptor = atoi(where);
    nodes = (struct node *)map_pages((u64)MOST_NODES * sizeof *nodes);
    values_on = 1;
}
