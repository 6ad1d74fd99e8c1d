// Lets the compiler say a long sentence 20,000 times, to make a record that a store and a judge choke on.
// expect: wrong_answer | compile_error; within 300 s
#include "hostile.h"
#define SAY _Pragma("message \"Words that go on and on, to fill the messages of the compiler and then the record\"")
#define TEN(x) x x x x x x x x x x

TEN(TEN(TEN(TEN(SAY SAY))))

__global__ void kernel() {}

int main(int, char** argv) {
    kernel<<<1, 1>>>();
    write_zeros(argv[1], argv[2]);
}
