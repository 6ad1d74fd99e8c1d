// Instructions that the emulator lacks: each must be refused by name and line at build time. One to a kernel.
#include <cuda_runtime.h>
#define KERNEL(name, ...) \
    __global__ void name(unsigned *p, float *f, unsigned long long *q) { unsigned a = p[0], b = p[1], r = 0; (void)a, (void)b; (void)r; __VA_ARGS__; p[2] = r; }

KERNEL(cube_map, f[0] = texCubemap<float>((cudaTextureObject_t)q[0], f[1], f[2], f[3]))
KERNEL(layered_cube_map, f[0] = texCubemapLayered<float>((cudaTextureObject_t)q[0], f[1], f[2], f[3], 1))
KERNEL(surface_reduction, asm("sured.b.add.1d.u32.trap [%0, {%1}], %2;" : : "l"(q[0]), "r"(a), "r"(b)))
KERNEL(find_nth_set, asm("fns.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(video_minimum, asm("vmin.s32.u32.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
KERNEL(video_shift, asm("vshl.u32.u32.u32.clamp %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
KERNEL(video_multiply, asm("vmad.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(permute_forward, asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(video_add, asm("vadd.u32.u32.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)))
KERNEL(video_difference, asm("vabsdiff4.s32.s32.s32.add %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(multiply_24_saturated, asm("mad24.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(cache_policy, asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(q[1])))
KERNEL(pack_saturated, asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0)))
KERNEL(formatted_surface, asm("sust.p.1d.b32.trap [%0, {%1}], {%2};" : : "l"(q[0]), "r"(a), "r"(b)))
KERNEL(performance_monitor, asm("mov.u32 %0, %%pm0;" : "=r"(r)))
KERNEL(environment_register, asm("mov.u32 %0, %%envreg7;" : "=r"(r)))
KERNEL(move_matrix, asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(a)))
KERNEL(mma_double, double d0 = 0, d1 = 0; asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d0), "+d"(d1) : "d"(1.0), "d"(2.0)); f[0] = (float)(d0 + d1))
KERNEL(mma_nibbles, int d0 = 0, d1 = 0; asm("mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(d0), "+r"(d1) : "r"(a), "r"(b)); r = (unsigned)(d0 + d1))
KERNEL(mma_bits, int d0 = 0, d1 = 0; asm("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(d0), "+r"(d1) : "r"(a), "r"(b)); r = (unsigned)(d0 + d1))
int main() { return 0; }
