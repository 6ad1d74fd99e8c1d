// Two translation units, linked; the kernel is in the other.
#include "kernels.cuh"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    compute_elsewhere(argv[1], argv[2]);
}
