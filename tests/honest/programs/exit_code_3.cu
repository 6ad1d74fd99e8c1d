// The output is right and complete; the exit code is not 0.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    compute(argv[1], argv[2]);
    return 3;
}
