// What the model solutions of `half` and `half_backward` have around their kernels: header, strides, files, memory.
//
// Theory of operation
//
//   The input is a header of 44 bytes and Q, K, V (and dO) in one of three layouts. A layout is nothing but strides: the
//   tensors are described once, here, as (pointer, distance between batches, heads and rows), and no kernel knows of
//   layouts. The input goes to device memory as it is; the output has the same layouts and comes back as it is.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

namespace half_program {

enum Type : int32_t { kFloat16, kBfloat16, kE4m3, kE5m2 };

struct Header {
    int32_t batches, query_heads, key_heads, queries, keys, dim, type, causal, window, layout;
    float scale;

    bool is_float8() const { return type == kE4m3 || type == kE5m2; }
    size_t element_bytes() const { return is_float8() ? 1 : 2; }
    size_t query_elements() const { return size_t(batches) * query_heads * queries * dim; }    // of Q, O, dO, dQ
    size_t key_elements() const { return size_t(batches) * key_heads * keys * dim; }           // of K, V, dK, dV
    size_t input_elements() const { return query_elements() + 2 * key_elements(); }
};
static_assert(sizeof(Header) == 44, "the header is the file's");

// Element (b, h, i, c) is at b * batch + h * head + i * row + c: strides in elements, from the start of its buffer.
struct Strides {
    size_t start, batch, head, row;
};

// Where Q, K, V are in the input, or dQ, dK, dV in the output after O, and how O is laid out.
struct Layout {
    Strides q, k, v, o;

    explicit Layout(const Header& h) {
        const size_t d = h.dim, nq = h.queries, nk = h.keys, hq = h.query_heads, hk = h.key_heads;
        const size_t after_q = h.query_elements();
        if (h.layout == 0) {
            q = {0, hq * nq * d, nq * d, d};
            k = {after_q, hk * nk * d, nk * d, d};
            v = {after_q + h.key_elements(), hk * nk * d, nk * d, d};
            o = q;
        } else if (h.layout == 1) {
            q = {0, nq * 3 * hq * d, d, 3 * hq * d};
            k = {hq * d, q.batch, d, q.row};
            v = {2 * hq * d, q.batch, d, q.row};
            o = {0, nq * hq * d, d, hq * d};
        } else {
            q = o = {0, nq * hq * d, d, hq * d};
            k = {after_q, nk * 2 * hk * d, d, 2 * hk * d};
            v = {after_q + hk * d, k.batch, d, k.row};
        }
    }
};

// What a model solution consists of. The workspace holds zeros when it is first used.
struct Solver {
    size_t (*workspace_bytes)(const Header&);
    cudaError_t (*launch)(const Header&, const void* input, void* output, void* workspace, cudaStream_t);
};

// ---------------------------------------------------------------------------------------------------- failing

[[noreturn]] inline void fail(const char* path, const char* what) {
    std::fprintf(stderr, "half: %s: %s\n", path, what);
    std::exit(1);
}

inline void cuda_check(cudaError_t error, const char* doing) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "half: %s: %s\n", doing, cudaGetErrorString(error));
    std::exit(1);
}

inline const char* problem_of(const Header& h, bool backward) {
    if (h.batches < 1 || h.key_heads < 1 || h.query_heads < 1 || h.queries < 1 || h.keys < 1)
        return "B, Hq, Hkv, Nq and Nk must be at least 1";
    if (h.query_heads % h.key_heads) return "Hq must be a multiple of Hkv";
    if (h.dim < 16 || h.dim > 256 || h.dim % 8) return "d must be a multiple of 8 from 16 to 256";
    if (h.type < kFloat16 || h.type > (backward ? kBfloat16 : kE5m2)) return "unknown type";
    if (h.layout < 0 || h.layout > 2) return "layout must be 0, 1 or 2";
    if (h.layout == 1 && (h.query_heads != h.key_heads || h.queries != h.keys))
        return "packed Q, K, V need Hq = Hkv and Nq = Nk";
    if (!(h.scale > 0)) return "scale must be positive";
    return nullptr;
}

// ---------------------------------------------------------------------------------------------------- the run

inline int main(int argc, char** argv, const Solver& solver, bool backward) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    const char *const input_path = argv[1], *const output_path = argv[2];
    const int file = ::open(input_path, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail(input_path, std::strerror(errno));
    Header header;
    struct stat status;
    if (::pread(file, &header, sizeof header, 0) != ssize_t(sizeof header)) fail(input_path, "shorter than its header");
    if (const char* const problem = problem_of(header, backward)) fail(input_path, problem);
    const size_t input_bytes =
        (header.input_elements() + (backward ? header.query_elements() : 0)) * header.element_bytes();
    if (::fstat(file, &status) != 0 || size_t(status.st_size) != sizeof header + input_bytes)
        fail(input_path, "its size is not what its header says");
    const size_t output_bytes = (header.query_elements() + (backward ? header.input_elements() : 0)) * 2;

    const char* const mapped =
        static_cast<const char*>(::mmap(nullptr, sizeof header + input_bytes, PROT_READ, MAP_PRIVATE, file, 0));
    if (mapped == MAP_FAILED) fail(input_path, std::strerror(errno));
    void *input, *output, *workspace;
    const size_t workspace_bytes = solver.workspace_bytes(header);
    cuda_check(cudaMalloc(&input, input_bytes), "allocating the input");
    cuda_check(cudaMalloc(&output, output_bytes), "allocating the output");
    cuda_check(cudaMalloc(&workspace, workspace_bytes), "allocating the workspace");
    cuda_check(cudaMemset(workspace, 0, workspace_bytes), "clearing the workspace");
    cuda_check(cudaMemcpy(input, mapped + sizeof header, input_bytes, cudaMemcpyHostToDevice), "copying the input");
    cuda_check(solver.launch(header, input, output, workspace, nullptr), "launching the kernel");

    const int out = ::open(output_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0) fail(output_path, std::strerror(errno));
    void* const result = std::malloc(output_bytes);
    if (!result) fail(output_path, "no memory for the output");
    cuda_check(cudaMemcpy(result, output, output_bytes, cudaMemcpyDeviceToHost), "computing");
    for (size_t done = 0; done < output_bytes;) {
        const ssize_t written = ::write(out, static_cast<const char*>(result) + done, output_bytes - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(output_path, std::strerror(errno));
        done += size_t(written);
    }
    if (::close(out) != 0) fail(output_path, std::strerror(errno));
    return 0;
}

}    // namespace half_program

// A program, or for benchmarks/half.py a library with the kernels alone.
#ifdef HALF_LIBRARY
#define HALF_PROGRAM(solver, backward)                                                                             \
    extern "C" size_t half_workspace_bytes(const half_program::Header* header) {                                   \
        return solver::workspace_bytes(*header);                                                                   \
    }                                                                                                              \
    extern "C" int half_launch(const half_program::Header* header, const void* input, void* output,                \
                               void* workspace, cudaStream_t stream) {                                             \
        return int(solver::launch(*header, input, output, workspace, stream));                                     \
    }
#else
#define HALF_PROGRAM(solver, backward)                                                              \
    int main(int argc, char** argv) {                                                               \
        return half_program::main(argc, argv, {solver::workspace_bytes, solver::launch}, backward); \
    }
#endif
