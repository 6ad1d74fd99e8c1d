// Blocks have 96 and 160 threads, and the grid has more than it needs.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    compute(argv[1], argv[2], 3);
    compute(argv[1], argv[2], 5);
}
