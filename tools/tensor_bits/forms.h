/* The forms of matrix instructions that are compared: X(name, unit, types of A, B and of C and D, k, words of 32 bits in a row of
 * A, PTX). unit MMA is m16n8 of a warp, WGMMA is m64n8 of a warpgroup. */
#define FORMS(X)                                                                                                       \
    X(mma_f16_k8, MMA, F16, F16, F32, 8, 4, "m16n8k8.row.col.f32.f16.f16.f32")                                         \
    X(mma_f16_k16, MMA, F16, F16, F32, 16, 8, "m16n8k16.row.col.f32.f16.f16.f32")                                      \
    X(mma_f16_k8_to_f16, MMA, F16, F16, F16, 8, 4, "m16n8k8.row.col.f16.f16.f16.f16")                                  \
    X(mma_f16_k16_to_f16, MMA, F16, F16, F16, 16, 8, "m16n8k16.row.col.f16.f16.f16.f16")                               \
    X(mma_bf16_k8, MMA, BF16, BF16, F32, 8, 4, "m16n8k8.row.col.f32.bf16.bf16.f32")                                    \
    X(mma_bf16_k16, MMA, BF16, BF16, F32, 16, 8, "m16n8k16.row.col.f32.bf16.bf16.f32")                                 \
    X(mma_tf32_k4, MMA, TF32, TF32, F32, 4, 4, "m16n8k4.row.col.f32.tf32.tf32.f32")                                    \
    X(mma_tf32_k8, MMA, TF32, TF32, F32, 8, 8, "m16n8k8.row.col.f32.tf32.tf32.f32")                                    \
    X(mma_e4m3, MMA, E4M3, E4M3, F32, 32, 8, "m16n8k32.row.col.f32.e4m3.e4m3.f32")                                     \
    X(mma_e5m2, MMA, E5M2, E5M2, F32, 32, 8, "m16n8k32.row.col.f32.e5m2.e5m2.f32")                                     \
    X(mma_e4m3_e5m2, MMA, E4M3, E5M2, F32, 32, 8, "m16n8k32.row.col.f32.e4m3.e5m2.f32")                                \
    X(mma_e4m3_to_f16, MMA, E4M3, E4M3, F16, 32, 8, "m16n8k32.row.col.f16.e4m3.e4m3.f16")                              \
    X(mma_e5m2_to_f16, MMA, E5M2, E5M2, F16, 32, 8, "m16n8k32.row.col.f16.e5m2.e5m2.f16")                              \
    X(wgmma_f16, WGMMA, F16, F16, F32, 16, 8, "m64n8k16.f32.f16.f16")                                                  \
    X(wgmma_f16_to_f16, WGMMA, F16, F16, F16, 16, 8, "m64n8k16.f16.f16.f16")                                           \
    X(wgmma_bf16, WGMMA, BF16, BF16, F32, 16, 8, "m64n8k16.f32.bf16.bf16")                                             \
    X(wgmma_tf32, WGMMA, TF32, TF32, F32, 8, 8, "m64n8k8.f32.tf32.tf32")                                               \
    X(wgmma_e4m3, WGMMA, E4M3, E4M3, F32, 32, 8, "m64n8k32.f32.e4m3.e4m3")                                             \
    X(wgmma_e5m2, WGMMA, E5M2, E5M2, F32, 32, 8, "m64n8k32.f32.e5m2.e5m2")                                             \
    X(wgmma_e5m2_e4m3, WGMMA, E5M2, E4M3, F32, 32, 8, "m64n8k32.f32.e5m2.e4m3")                                        \
    X(wgmma_e4m3_to_f16, WGMMA, E4M3, E4M3, F16, 32, 8, "m64n8k32.f16.e4m3.e4m3")                                      \
    X(wgmma_e5m2_to_f16, WGMMA, E5M2, E5M2, F16, 32, 8, "m64n8k32.f16.e5m2.e5m2")

#define COLUMNS 8
enum unit { MMA, WGMMA };
enum form_number {
#define NUMBER(name, ...) FORM_##name,
    FORMS(NUMBER)
#undef NUMBER
    FORM_COUNT
};
#ifdef __cplusplus
extern "C" {
#endif
/* One instruction of the emulator: rows of A, columns of B (whole words), and C and D by rows, a word for each element. */
void emulate(int form, unsigned architecture, const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d);
/* `count` instructions of the GPU, likewise, one after the other; NULL, or what failed. */
const char *run_on_the_gpu(int form, unsigned count, const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d);
#ifdef __cplusplus
}
#endif
