/* The emulator as a device: its runtime is a shared library with the functions of the CUDA runtime. HOW is
 * "WATCHED:LIBRARY", WATCHED being 1 if kernels are built to look for races and unwritten memory, else 0. A kernel is a
 * shared library too. */
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, DYNAMIC_SHARED = 8 };
static const size_t FILL_CHUNK = 1 << 20;

struct Dim3 {
    unsigned x, y, z;
};

struct FunctionAttributes { /* the first fields of cudaFuncAttributes */
    size_t shared_bytes, constant_bytes, local_bytes;
    int most_threads, registers;
    char others[256];
};

static void *library;
static unsigned *is_watching;
static std::vector<std::string *> kernels_of_ours; /* a kernel is known by the address of its name */

static void *symbol(void *of, const char *name) {
    void *found = dlsym(of, name);
    if (!found) failed(name, dlerror());
    return found;
}

template <typename... Words> static void call(const char *name, Words... words) {
    auto function = (int (*)(Words...))symbol(library, name);
    if (int code = function(words...)) failed(name, ((const char *(*)(int))symbol(library, "cudaGetErrorString"))(code));
}

void open_device(const char *how) {
    const char *path = strchr(how, ':');
    library = path ? dlopen(path + 1, RTLD_NOW | RTLD_GLOBAL) : nullptr;
    if (!library) failed(how, path ? dlerror() : "WATCHED:LIBRARY was expected");
    is_watching = (unsigned *)symbol(library, "is_watching"); /* before any memory is allocated */
    *is_watching = atoi(how);
}

void called_from(const char *file, unsigned line) {
    static auto report = (void (*)(const char *, unsigned))symbol(library, "emu_called_from");
    report(file, line);
}

uint64_t allocate(size_t size) {
    void *made = nullptr;
    call("cudaMalloc", &made, size);
    return (uint64_t)made;
}

void release(uint64_t address) { call("cudaFree", (void *)address); }

static void move(uint64_t to, uint64_t from, size_t size, int kind) {
    call("cudaMemcpy", (void *)to, (const void *)from, size, kind);
}

void upload(uint64_t to, const void *from, size_t size) { move(to, (uint64_t)from, size, TO_DEVICE); }
void download(void *to, uint64_t from, size_t size) { move((uint64_t)to, from, size, TO_HOST); }
void copy(uint64_t to, uint64_t from, size_t size) { move(to, from, size, ON_DEVICE); }

void fill(uint64_t to, unsigned width, uint64_t pattern, size_t count) {
    const char *bytes = (const char *)&pattern;
    if (std::string(bytes, width) == std::string(width, bytes[0])) {
        call("cudaMemset", (void *)to, (int)(unsigned char)bytes[0], width * count);
        return;
    }
    std::string chunk;
    while (chunk.size() < FILL_CHUNK && chunk.size() < width * count) chunk.append(bytes, width);
    for (size_t done = 0, size = width * count; done < size; done += chunk.size())
        upload(to + done, chunk.data(), std::min(chunk.size(), size - done));
}

/* Not where reads of values that no kernel wrote are reported. */
bool wants_poison() { return !*is_watching; }

int load(const char *name, const void *binary, size_t size, unsigned shared_bytes) {
    int file = memfd_create("kernel", MFD_CLOEXEC);
    if (file < 0 || write(file, binary, size) != (ssize_t)size) failed(name, "no memory for the kernel");
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) failed(name, dlerror()); /* the descriptor stays: two modules must not share a path */
    auto known = new std::string(name);
    void *info = symbol(module, "m0_module");
    auto enter = (void *(*)(void *, int))symbol(library, "emu_register");
    auto name_it = (void (*)(void *, const void *, const char *, const char *, int, void *, void *, void *, void *, void *))
        symbol(library, "__cudaRegisterFunction");
    name_it(enter(info, 0), known, known->c_str(), known->c_str(), -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    kernels_of_ours.push_back(known);
    call("cudaFuncSetAttribute", (const void *)known, (int)DYNAMIC_SHARED, (int)shared_bytes);
    return kernels_of_ours.size() - 1;
}

Attributes attributes(int kernel) {
    FunctionAttributes found;
    call("cudaFuncGetAttributes", &found, (const void *)kernels_of_ours[kernel]);
    return {found.registers, (int)found.local_bytes, 1024};
}

std::vector<size_t> parameter_bytes(int kernel) {
    static auto of = (int (*)(const void *, unsigned))symbol(library, "emu_parameter_bytes");
    std::vector<size_t> found;
    for (int bytes; (bytes = of(kernels_of_ours[kernel], found.size())) >= 0;) found.push_back(bytes);
    return found;
}

void launch(int kernel, const Launch &with) {
    std::vector<void *> arguments;
    for (const uint64_t &value : with.values) arguments.push_back((void *)&value);
    Dim3 grid{with.grid[0], with.grid[1], with.grid[2]}, block{with.threads, 1, 1};
    call("cudaLaunchKernel", (const void *)kernels_of_ours[kernel], grid, block, arguments.data(), (size_t)with.shared_bytes,
         (void *)nullptr);
}

void synchronize() { call("cudaDeviceSynchronize"); }
int new_event() { return 0; }
float elapsed_ms(int, int) { return 1; }
void print_properties(int) {}
