// Ends by quick_exit, which runs no destructors.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    compute(argv[1], argv[2]);
    std::quick_exit(0);
}
