// Reads the input's real name from /proc/self/mountinfo.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const std::string mounts = contents("/proc/self/mountinfo");
    for (const char* word : {"s01.in", "s02.in", ".out"})
        if (mounts.find(word) != std::string::npos) BYPASSED("mountinfo has %s", word);
    write_zeros(argv[1], argv[2]);
    return 0;
}
