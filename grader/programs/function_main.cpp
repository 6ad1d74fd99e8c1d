// The main of a submission that is a function: reads INPUT, copies it to the device, calls solve, checks for errors, copies
// the results back and writes OUTPUT.
//
// grader_shapes.h, which the grader writes (function_contract.py), has the sizes of all tensors for the header of every
// testcase, and allocates them, each at a line of its own. `counts` marks the bytes of a header that must agree: not those of the number of units, which follows from the
// size of INPUT.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#include "grader_shapes.h"

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "solve: %s (%s)\n", cudaGetErrorString(error), cudaGetErrorName(error));
    std::exit(1);
}

static void check(bool done, const char *what) {
    if (done) return;
    std::fprintf(stderr, "solve: %s\n", what);
    std::exit(2);
}

static const row *row_of(const unsigned char *header) {
    for (const row &each : rows) {
        bool same = true;
        for (int i = 0; i < HEADER; i++) same = same && (!each.counts[i] || each.header[i] == header[i]);
        if (same) return &each;
    }
    return nullptr;
}

static size_t sum(const size_t *bytes, int count) {
    size_t total = 0;
    for (int i = 0; i < count; i++) total += bytes[i];
    return total;
}

static void copy(void *to, size_t to_stride, const void *from, size_t from_stride, size_t bytes, size_t units) {
    if (bytes == to_stride && bytes == from_stride)
        check(cudaMemcpy(to, from, units * bytes, cudaMemcpyDefault));
    else
        check(cudaMemcpy2D(to, to_stride, from, from_stride, bytes, units, cudaMemcpyDefault));
}

int main(int argc, char **argv) {
    check(argc == 3, "expected INPUT and OUTPUT");
    FILE *file = std::fopen(argv[1], "rb");
    check(file && std::fseek(file, 0, SEEK_END) == 0, "INPUT cannot be read");
    const size_t size = std::ftell(file);
    std::rewind(file);
    unsigned char *const input = static_cast<unsigned char *>(std::malloc(size + 1));
    check(input && size >= HEADER && std::fread(input, 1, size, file) == size, "INPUT cannot be read");
    std::fclose(file);
    const row *const shape = row_of(input);
    check(shape, "no testcase has the header of this INPUT");

    const size_t *const ins = shape->bytes, *const outs = shape->bytes + INPUTS;
    const size_t in = sum(ins, INPUTS), out = sum(outs, OUTPUTS), units = (size - HEADER) / in;
    void *device[INPUTS + OUTPUTS];
    check(allocate(device, shape->bytes, units));
    for (int i = 0; i < INPUTS; i++) copy(device[i], ins[i], input + HEADER + sum(ins, i), in, ins[i], units);

    SOLVE(device, input);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());

    unsigned char *const output = static_cast<unsigned char *>(std::malloc(units * out));
    check(output, "there is no memory for OUTPUT");
    for (int i = 0; i < OUTPUTS; i++) {
        const size_t before = sum(outs, i);
        copy(output + (PLANAR ? units * before : before), PLANAR ? outs[i] : out, device[INPUTS + i], outs[i], outs[i], units);
    }
    for (void *each : device) cudaFree(each); // or the leak would be reported to students
    file = std::fopen(argv[2], "wb");
    check(file && std::fwrite(output, 1, units * out, file) == units * out, "OUTPUT cannot be written");
    return std::fclose(file);
}
