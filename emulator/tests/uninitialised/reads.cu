// Forty reads of memory that nothing has written. A program is one line, the line that its finding must name. `in` holds
// zeros, `out` has a value in every element, `g` has none; `t` is the thread of the block, `n` is 20.
#include "../seeded/seeded.h"

#define READ(name, blocks, threads, ...)                                                     \
    __global__ void name(const int *in, int *out, int *g, int n) {                           \
        const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;                          \
        (void)i;                                                                             \
        __VA_ARGS__                                                                          \
    }                                                                                        \
    PROGRAM(name) { name<<<blocks, threads>>>(filled<int>(1024), filled<int>(1024), fresh<int>(1024), 20); }
#define SYNC __syncthreads();

// ---- shared memory
// clang-format off
READ(shared_own_slot, 1, 128, __shared__ int s[128]; s[t] = s[t] + 1; SYNC out[t] = s[t];)
READ(shared_own_slot_of_a_partial_warp, 1, 40, __shared__ int s[40]; s[t] = s[t] + 1; SYNC out[t] = s[t];)
READ(shared_own_slot_in_a_loop, 1, 64, __shared__ float s[64]; for (int k = 0; k < n; k++) s[t] += in[k]; out[t] = s[t];)
READ(shared_own_slot_twice_synced, 1, 64, __shared__ int s[64]; SYNC s[t] |= in[t]; SYNC out[t] = s[t ^ 1];)
READ(shared_own_byte, 1, 64, __shared__ unsigned char s[64]; s[t] = s[t] + in[t]; SYNC out[t] = s[t];)
READ(shared_own_float4, 1, 32, __shared__ float4 s[32]; if (t < n) s[t] = make_float4(t, 0, 0, 0); float4 v = s[t]; out[t] = v.x + v.y + v.z + v.w;)
READ(shared_histogram, 1, 128, __shared__ int bins[16]; SYNC atomicAdd(&bins[in[t] & 15], 1); SYNC if (t < 1) out[t] = bins[t];)
READ(shared_histogram_of_many_blocks, 3, 64, __shared__ unsigned bins[64]; for (int k = t; k < 256; k += 64) atomicAdd(&bins[(in[k] + k) & 63], 1u); SYNC out[t] = bins[t];)
READ(shared_maximum, 1, 64, __shared__ int best; atomicMax(&best, in[t]); SYNC out[t] = best;)
READ(shared_maximum_after_a_look, 1, 64, __shared__ int best; if (best <= in[t]) atomicMax(&best, t + 1); SYNC out[t] = best;)
READ(shared_others_slot_behind_a_guard, 1, 64, __shared__ int s[64]; if (t < n) s[t] = t; SYNC out[t] = s[63 - t];)
READ(shared_halo, 1, 64, __shared__ int s[66]; s[t + 1] = in[t]; SYNC out[t] = s[t] + s[t + 2];)
READ(shared_padding, 1, 64, __shared__ int s[2][33]; s[t / 32][t % 32] = t; SYNC out[t] = s[t / 32][t % 32 + 1];)
READ(shared_tree_of_a_partial_warp, 1, 40, __shared__ int s[64]; s[t] = t; SYNC for (int k = 32; k; k /= 2) { if (t < k && t + k < 64) s[t] += s[t + k]; SYNC } out[t] = s[0];)
READ(shared_after_an_early_return, 1, 64, __shared__ int s[64]; if (t >= n) return; s[t] = t; __syncwarp(0xfffffu); out[t] = s[(t + 1) & 31];)
READ(shared_lane_of_the_same_warp, 1, 32, __shared__ int s[32]; int v = s[t ^ 1]; __syncwarp(); s[t] = v + 1; __syncwarp(); out[t] = s[t];)
READ(shared_dynamic, 1, 32, __shared__ int s[64]; s[2 * t] = t; SYNC out[t] = s[2 * t + 1];)
READ(shared_written_in_the_last_pass_only, 1, 64, __shared__ int s[64]; int v = 0; for (int k = 0; k < 3; k++) { v += s[63 - t]; SYNC if (k == 2) s[t] = v; SYNC } out[t] = s[t];)

// ---- local memory
READ(local_sum, 1, 64, float a[64]; for (int k = 0; k < n; k++) a[(in[k] + k) & 63] += k; out[t] = a[in[t] + 3];)
READ(local_counts_of_a_partial_warp, 1, 40, int a[32]; for (int k = 0; k < n; k++) a[(in[k] + t) & 31]++; out[t] = a[in[t] + t & 31];)
READ(local_element_that_was_skipped, 1, 32, int a[16]; for (int k = 1; k < 16; k++) a[in[k] + k] = k; out[t] = a[(in[t] + t) & 15];)
READ(local_only_some_lanes, 1, 64, int a[16]; for (int k = 0; k < 16; k++) if (t < n) a[in[k] + k] = k; out[t] = a[(in[t] + t) & 15];)
READ(local_last_of_the_loop, 2, 32, float a[33]; for (int k = 0; k < 32; k++) a[in[k] + k] = t; out[i] = a[in[t] + 32];)
READ(local_double, 1, 32, double a[16]; for (int k = 0; k < 8; k++) a[in[k] + k] = k; out[t] = (int)a[(in[t] + t) & 15];)
READ(local_bytes, 1, 32, unsigned char a[64]; for (int k = 0; k < 32; k++) a[in[k] + k] = k; out[t] = a[in[t] + t + 1];)
READ(local_of_two_dimensions, 1, 32, float a[4][8]; for (int k = 0; k < 4; k++) for (int j = 0; j < 7; j++) a[in[k] + k][in[j] + j] = j; out[t] = a[in[t] + (t & 3)][in[t] + (t & 7)];)
READ(local_through_a_pointer, 1, 32, int a[16]; int *p = a + in[t]; for (int k = 0; k < 8; k++) p[in[k] + k] = k; out[t] = p[in[t] + (t & 15)];)
READ(local_stack_too_deep, 1, 32, int a[32]; int top = 0; for (int k = 0; k < n; k++) a[top++ + in[k]] = k; out[t] = a[top + in[t]];)

// ---- global memory
READ(global_own_slot, 1, 64, g[t] = g[t] + 1;)
READ(global_own_slot_of_a_partial_warp, 1, 40, g[t] += t;)
READ(global_own_slot_in_a_loop, 2, 64, for (int k = 0; k < n; k++) g[i] += in[k];)
READ(global_counter, 4, 32, atomicAdd(&g[0], 1);)
READ(global_counters_of_bytes, 1, 32, unsigned char *b = (unsigned char *)g; b[t] = b[t] + 1;)
READ(global_maximum_after_a_look, 1, 32, if (t == 0 && g[0] < 5) atomicMax(&g[0], 5);)
READ(global_others_slot, 1, 64, if (t < n) g[t] = t; SYNC out[t] = g[63 - t];)
READ(global_vector, 1, 32, if (t < n) ((int4 *)g)[t] = make_int4(t, t, t, t); out[t] = ((int4 *)g)[t].w;)
READ(global_next_to_the_last, 1, 64, g[t] = in[t]; SYNC if (t == 63) out[t] = g[t + 1];)
READ(global_stride, 2, 64, g[2 * i] = i; out[i] = g[2 * i + 1];)
READ(global_exchange, 1, 32, out[t] = atomicCAS(&g[t], 0, 1);)
READ(global_double, 1, 32, double *d = (double *)g; if (t < n) d[t] = t; out[t] = (int)d[t];)
// clang-format on
