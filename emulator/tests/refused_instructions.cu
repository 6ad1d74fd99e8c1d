// Instructions that the emulator lacks: each must be refused by name and line at build time. One to a kernel.
#include <cuda_runtime.h>
#define KERNEL(name, ...) \
    __global__ void name(unsigned *p, float *f, unsigned long long *q) { unsigned a = p[0], b = p[1], r = 0; (void)a, (void)b; (void)r; __VA_ARGS__; p[2] = r; }

KERNEL(cube_map, f[0] = texCubemap<float>((cudaTextureObject_t)q[0], f[1], f[2], f[3]))
KERNEL(layered_cube_map, f[0] = texCubemapLayered<float>((cudaTextureObject_t)q[0], f[1], f[2], f[3], 1))
KERNEL(surface_reduction, asm("sured.b.add.1d.u32.trap [%0, {%1}], %2;" : : "l"(q[0]), "r"(a), "r"(b)))
KERNEL(multiply_24_saturated, asm("mad24.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(1)))
KERNEL(formatted_surface, asm("sust.p.1d.b32.trap [%0, {%1}], {%2};" : : "l"(q[0]), "r"(a), "r"(b)))
KERNEL(performance_monitor, asm("mov.u32 %0, %%pm0;" : "=r"(r)))
KERNEL(environment_register, asm("mov.u32 %0, %%envreg7;" : "=r"(r)))
KERNEL(packed_surface_reduction, asm("sured.p.min.2d.b32.trap [%0, {%1, %1}], %2;" : : "l"(q[0]), "r"(a), "r"(b)))
KERNEL(multisampled_texture, asm("{ .reg .f32 x, y, z; tex.2dms.v4.f32.s32 {%0, x, y, z}, [%1, {%2, %2, %2, %2}]; }" : "=f"(f[0]) : "l"(q[0]), "r"(a)))
KERNEL(kind_of_handle, asm("{ .reg .pred p; istypep.texref p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "l"(q[0])))
KERNEL(wide_performance_monitor, asm("mov.u64 %0, %%pm1_64;" : "=l"(q[1])))
KERNEL(memory_of_several_gpus, asm("multimem.ld_reduce.relaxed.gpu.global.add.u32 %0, [%1];" : "=r"(r) : "l"(p)))
int main() { return 0; }
