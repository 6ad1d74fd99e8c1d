// A kernel that is one matrix instruction: a block's registers a0 … a3, b0 … b3, c0 … c7 and the metadata e0 come from
// memory, d0 … d7 go there, 32 lanes of each after the other.
#pragma once

#define LOAD(r, array, i) "ld.global.b32 " r ", [%" array " + " i "];\n"
#define STORE(r, i) "st.global.b32 [%3 + " i "], " r ";\n"
#define INSTRUCTION(name, text)                                                                                        \
    __global__ void name(const unsigned *a, const unsigned *b, const unsigned *c, unsigned *d, const unsigned *e) {    \
        const int l = threadIdx.x, n = blockIdx.x;                                                                     \
        asm volatile("{\n.reg .b32 %%a<4>, %%b<4>, %%c<8>, %%d<8>, %%e<1>;\n" LOAD("%%a0", "0", "0") LOAD("%%a1", "0", "128") \
                     LOAD("%%a2", "0", "256") LOAD("%%a3", "0", "384") LOAD("%%b0", "1", "0") LOAD("%%b1", "1", "128") \
                     LOAD("%%b2", "1", "256") LOAD("%%b3", "1", "384") LOAD("%%c0", "2", "0") LOAD("%%c1", "2", "128") \
                     LOAD("%%c2", "2", "256") LOAD("%%c3", "2", "384") LOAD("%%c4", "2", "512") LOAD("%%c5", "2", "640") \
                     LOAD("%%c6", "2", "768") LOAD("%%c7", "2", "896") LOAD("%%e0", "4", "0")                          \
                     "mov.b32 %%d0, 0; mov.b32 %%d1, 0; mov.b32 %%d2, 0; mov.b32 %%d3, 0;\n"                           \
                     "mov.b32 %%d4, 0; mov.b32 %%d5, 0; mov.b32 %%d6, 0; mov.b32 %%d7, 0;\n" text "\n"                 \
                     STORE("%%d0", "0") STORE("%%d1", "128") STORE("%%d2", "256") STORE("%%d3", "384") STORE("%%d4", "512") STORE("%%d5", "640") \
                     STORE("%%d6", "768") STORE("%%d7", "896") "}" ::"l"(a + 128 * n + l), "l"(b + 128 * n + l),       \
                     "l"(c + 256 * n + l), "l"(d + 256 * n + l), "l"(e + 32 * n + l)                                   \
                     : "memory");                                                                                      \
    }
typedef void (*Instruction)(const unsigned *, const unsigned *, const unsigned *, unsigned *, const unsigned *);
