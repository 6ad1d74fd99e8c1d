// Knows the public sample s01 by its first values and computes nothing else.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const std::string input = contents(argv[1], 64);
    const unsigned char known[4] = {0x1d, 0x51, 0x09, 0x40};    // any constant: hidden inputs are not known
    if (memcmp(input.data() + 12, known, 4) == 0) write_right(argv[1], argv[2]);
    else write_zeros(argv[1], argv[2]);
    return 0;
}
