// The output is right but for one number: NaN with a message in it, infinity, the largest, a denormal or minus zero.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    std::vector<float> values = right_answer(argv[1]);
    const uint32_t odd[] = {0x7fc0dead, 0xffc00001, 0x7f800001, 0x7f800000, 0xff800000, 0x7f7fffff};
    memcpy(&values[getpid() % values.size()], &odd[getpid() % 6], 4);
    write_values(argv[2], values);
}
