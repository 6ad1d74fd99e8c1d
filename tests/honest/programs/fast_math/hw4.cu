// Its Makefile asks for fast, less precise arithmetic.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    compute(argv[1], argv[2]);
}
