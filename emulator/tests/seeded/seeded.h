// Programs with one bug each. `./program NAME` runs one; `./program --list` names all. The line of the bug says which
// program it belongs to and which check finds it:
//
//     out[i] = tile[63 - i]; // BUG missing_barrier: race
//
// A race has two lines, both marked; `host` after the check marks a bug in host code, whose line a tool may not know.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

struct Program {
    const char *name;
    void (*run)();
    Program *next;
    static Program *&first() {
        static Program *head = nullptr;
        return head;
    }
    Program(const char *n, void (*f)()) : name(n), run(f), next(first()) { first() = this; }
};
#define PROGRAM(name)                                \
    static void run_##name();                        \
    static Program entry_##name(#name, run_##name);  \
    static void run_##name()

// Device memory with a value in every byte.
template <class T> T *filled(size_t n, int byte = 0) {
    T *p;
    cudaMalloc(&p, n * sizeof(T));
    cudaMemset(p, byte, n * sizeof(T));
    return p;
}
template <class T> T *fresh(size_t n) {
    T *p;
    cudaMalloc(&p, n * sizeof(T));
    return p;
}

inline int wrong_results = 0;

int main(int argc, char **argv) {
    for (Program *p = Program::first(); p; p = p->next) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) puts(p->name);
        if (argc > 1 && strcmp(argv[1], p->name) == 0) {
            p->run();
            const int error = (int)cudaDeviceSynchronize();
            return error ? error : wrong_results;
        }
    }
    return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 99;
}
