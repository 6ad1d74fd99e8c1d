// Does nothing and reports success.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    puts("All tests passed.");
    return 0;
}
