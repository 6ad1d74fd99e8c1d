// The output is right and lacks its last byte, which is nearly always that of a small number.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    if (truncate(argv[2], shape_of(argv[1]).count() * 4 - 1) != 0) return 1;
}
