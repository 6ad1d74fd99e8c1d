// Prints 200 MB.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    std::vector<char> line(1 << 20, 'x');
    for (int i = 0; i < 100; ++i) { fwrite(line.data(), 1, line.size(), stdout); fwrite(line.data(), 1, line.size(), stderr); }
    return 0;
}
