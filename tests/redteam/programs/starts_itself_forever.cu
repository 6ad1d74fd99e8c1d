// Executes itself over and over, fifty thousand times at most, each time with a longer environment.
// expect: wrong_answer | time_limit | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const char* const seen = getenv("TIMES");
    const int times = seen ? atoi(seen) : 0;
    setenv("TIMES", std::to_string(times + 1).c_str(), 1);
    setenv(("ROUND" + std::to_string(times)).c_str(), std::string(100, 'x').c_str(), 1);
    if (times < 50000) execv("/proc/self/exe", argv);
    write_zeros(argv[1], argv[2]);
}
