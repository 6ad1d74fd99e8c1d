/* Prints as a kernel does: CUDA's conversions as C's printf does, everything else as it stands. Prints what differs. */
#include "print.c"

static struct allocation host; /* addresses are the host's own */
struct allocation *memory_find(u64 address) { return (void)address, &host; }
struct allocation *memory_allocate(u64 size, u64 align, enum memory_kind kind, const char *label) { return NULL; }
int memory_free(u64 address, enum memory_kind kind, const char *function) { return 0; }
void thread_of(struct warp *w, u32 lane, u32 *xyz) {}
void rt_fault(struct warp *w, u32 site, u32 lane, int code, const char *kind, const char *facts, ...) {}

static const char text[] = "text";
static const struct { const char *format; u64 bits; const char *want; } cases[] = {
    {"%d|%%|", 0xfffffffe, "-2|%|"},
    {"%#6x|%u", 255 | 7ull << 32, "  0xff|7"},
    {"%hd|%hhu", 0x1fffe | 0x101ull << 32, "-2|1"},
    {"%lld", ~1ull, "-2"},
    {"%zu", 1ull << 40, "1099511627776"},
    {"%+.2f", 0x4004000000000000, "+2.50"},
    {"%6.3e", 0x4004000000000000, "2.500e+00"},
    {"%-6.2s|", (u64)text, "te    |"},
    {"%c", 'c', "c"},
    {"%-3c|", 'c', "c  |"},
    {"%*d|", 4 | 7ull << 32, "   7|"},
    {"%p", 0x10, "0x10"},
    {"%n%hhn%lln%lc%ls%Lf%m%1$d%k%", 0x10, "%n%hhn%lln%lc%ls%Lf%m%1$d%k%"},
};

int main(void) {
    static struct warp w;
    char got[9000];
    int differ = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *shown = stdout;
        stdout = fmemopen(got, sizeof got, "w");
        rt_vprintf(&w, 0, (u64)cases[i].format, (u64)&cases[i].bits);
        fclose(stdout);
        stdout = shown;
        if (strcmp(got, cases[i].want)) differ |= printf("%s: %s, expected %s\n", cases[i].format, got, cases[i].want);
    }
    stdout = fmemopen(got, sizeof got, "w");
    const u64 wide = 999999999 | 7ull << 32;
    rt_vprintf(&w, 0, (u64) "%*d%999999d%.999999999d%.99999f", (u64)&wide);
    fclose(stdout);
    return differ != 0 || strlen(got) != 2 * MOST_WIDE - 1;
}
