// Handed in as a single file, it includes a hidden folder's key, a neighbour's header and a neighbour's notes.
// expect: wrong_answer; single file
#include "hostile.h"
#if __has_include(".private/key.h")
#include ".private/key.h"
#define TAKEN 1
#elif __has_include("alice/attention.cuh")
#include "alice/attention.cuh"
#define TAKEN 1
#elif __has_include("alice/notes.txt")
#include "alice/notes.txt"
#define TAKEN 1
#else
#define TAKEN 0
#endif

int main(int, char** argv) {
    if (TAKEN) BYPASSED("somebody else's file came along");
    write_zeros(argv[1], argv[2]);
}
