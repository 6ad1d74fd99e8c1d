/* The emulator's matrix instructions (cudaemu/runtime), called with matrices in memory. */
#include "tensor.h"

#include "forms.h"

static const struct mma INSTRUCTIONS[] = {
#define INSTRUCTION(name, unit, a, b, c, k, words, text) {0, unit == MMA ? 16 : 64, COLUMNS, k, ELEMENT_##a, ELEMENT_##b, ELEMENT_##c, ELEMENT_##c, 0},
    FORMS(INSTRUCTION)
};

/* Where element i of a lane's C lies: rows g and g + 8, columns 2t and 2t + 1. */
static u32 place(u32 lane, u32 i) { return (i / 2 * 8 + lane / 4) * COLUMNS + lane % 4 * 2 + i % 2; }

static void load_sums(int halves, const u32 *c, u32 *registers) {
    for (u32 l = 0; l < 32; l++)
        for (u32 i = 0; i < 4; i++) {
            if (!halves) registers[32 * i + l] = c[place(l, i)];
            else if (i % 2) registers[32 * (i / 2) + l] = c[place(l, i - 1)] | c[place(l, i)] << 16;
        }
}
static void store_sums(int halves, const u32 *registers, u32 *d) {
    for (u32 l = 0; l < 32; l++)
        for (u32 i = 0; i < 4; i++) d[place(l, i)] = halves ? registers[32 * (i / 2) + l] >> 16 * (i % 2) & 0xffff : registers[32 * i + l];
}

void emulate(int form, u32 architecture, const u32 *a, const u32 *b, const u32 *c, u32 *d) {
    struct mma how = INSTRUCTIONS[form];
    how.architecture = architecture;
    const u32 words = how.k * element_bits(how.a) / 32, tile = 16 * COLUMNS;
    const int halves = how.c == ELEMENT_F16;
    u32 sums[WARPGROUP][4 * 32] __attribute__((aligned(64))), fa[4 * 32] __attribute__((aligned(64))), fb[2 * 32] __attribute__((aligned(64)));
    u32 *const warps[WARPGROUP] = {sums[0], sums[1], sums[2], sums[3]};
    for (u32 w = 0; w < how.m / 16; w++) load_sums(halves, c + w * tile, sums[w]);
    if (how.m == 64) multiply_warpgroup(how, a, b, warps);
    else {
        for (u32 r = 0; r < words / 2; r++)
            for (u32 l = 0; l < 32; l++) fa[32 * r + l] = a[(r % 2 * 8 + l / 4) * words + r / 2 * 4 + l % 4];
        for (u32 r = 0; r < words / 4; r++)
            for (u32 l = 0; l < 32; l++) fb[32 * r + l] = b[l / 4 * words + r * 4 + l % 4];
        rt_mma(how, fa, fb, sums[0], sums[0], NULL, 0);
    }
    for (u32 w = 0; w < how.m / 16; w++) store_sums(halves, sums[w], d + w * tile);
}
