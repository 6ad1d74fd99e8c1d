// Wrong uses of asynchronous copies, which a GPU may let pass: `./copies NAME` prints what the threads read.
#include <cstdio>
#include <cstring>

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

__global__ void before_the_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int k = 0; k < 2; k++) {
        __pipeline_memcpy_async(&s[t], &in[k * 64 + t], 4);
        __pipeline_commit();
        __syncthreads();
        out[k * 64 + t] = s[63 - t]; // too early
        __syncthreads();
        __pipeline_wait_prior(0);
        __syncthreads();
    }
}
__global__ void never(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = -1, s[t + 64] = -2;
    __syncthreads();
    __pipeline_memcpy_async(&s[t], &in[t], 4);
    __pipeline_memcpy_async(&s[t + 64], &in[t], 4);
    __pipeline_commit();
    __syncthreads();
    out[t] = s[t], out[t + 64] = s[t + 64];
}
__global__ void overwritten_source(int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], &in[t], 4);
    in[t] = -5; // the copy may not have been made
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[t] = out[t + 64] = s[t];
}
__global__ void without_end(const int *in, int *out, int rounds) {
    __shared__ int s[128];
    int t = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        __pipeline_memcpy_async(&s[(k & 1) * 64 + t], &in[(k & 1) * 64 + t], 4);
        __pipeline_commit();
    }
    __pipeline_wait_prior(0);
    out[t] = s[t], out[t + 64] = s[t + 64];
}
__global__ void target_past_the_end(const int *in, int *out) {
    extern __shared__ int s[];
    __pipeline_memcpy_async(&s[threadIdx.x + 1], &in[threadIdx.x], 4); // target
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}
__global__ void source_past_the_end(const int *in, int *out) {
    __shared__ int s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x + 96], 4); // source
    __pipeline_commit();
    out[threadIdx.x] = 0; // not waited for
}
__global__ void misaligned(const char *in, int *out) {
    __shared__ int4 s[64];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(&s[threadIdx.x])), "l"(in + 4)); // misaligned
    out[threadIdx.x] = 0;
}

int main(int, char **argv) {
    int host[128], *in, *out;
    for (int i = 0; i < 128; i++) host[i] = i + 1;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    const char *name = argv[1];
    if (strcmp(name, "before_the_wait") == 0) before_the_wait<<<1, 64>>>(in, out);
    else if (strcmp(name, "never") == 0) never<<<1, 64>>>(in, out);
    else if (strcmp(name, "overwritten_source") == 0) overwritten_source<<<1, 64>>>(in, out);
    else if (strcmp(name, "without_end") == 0) without_end<<<1, 64>>>(in, out, 20000);
    else if (strcmp(name, "target_past_the_end") == 0) target_past_the_end<<<1, 64, 256>>>(in, out);
    else if (strcmp(name, "source_past_the_end") == 0) source_past_the_end<<<1, 64>>>(in, out);
    else misaligned<<<1, 64>>>((const char *)in, out);
    cudaError_t e = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    if (e != cudaSuccess) return (int)e % 256;
    for (int v : host) printf("%d\n", v);
    return 0;
}
