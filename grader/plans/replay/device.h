/* What a replay needs of a device. on_gpu.cc and on_emulator.cc implement it; a program is linked with one of them.
 *
 * Addresses are in device memory, sizes are in bytes. A function that fails prints one line, with the submission's line
 * if there is one, and ends the process: `failed` does both. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

struct Launch {
    unsigned grid[3], threads, shared_bytes, cluster;
    bool cooperative;
    std::vector<uint64_t> values; /* of the arguments, each in the low bytes, as many as the kernel has parameters */
};

struct Attributes {
    int registers, local_bytes, most_threads;
};

void open_device(const char *how);
/* Tell the device which line of the submission makes the calls that follow. */
void called_from(const char *file, unsigned line);
[[noreturn]] void failed(const char *function, const char *why);

uint64_t allocate(size_t size);
void release(uint64_t address);
void upload(uint64_t to, const void *from, size_t size);
void download(void *to, uint64_t from, size_t size);
void copy(uint64_t to, uint64_t from, size_t size);
/* Write `count` times the `width` (1, 2, 4 or 8) low bytes of `pattern`. */
void fill(uint64_t to, unsigned width, uint64_t pattern, size_t count);
/* Whether new output memory must be overwritten, so that no value of an earlier program is left in it. */
bool wants_poison();

int load(const char *name, const void *binary, size_t size, unsigned shared_bytes); /* the kernel's number */
Attributes attributes(int kernel);
std::vector<size_t> parameter_bytes(int kernel); /* of each parameter */
void launch(int kernel, const Launch &launch);
void synchronize();

int new_event();
float elapsed_ms(int begin, int end);
/* Print "NAME VALUE " for each property that Triton reads; nothing on the emulator. */
void print_properties(int descriptor);
