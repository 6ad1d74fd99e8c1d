// Prints its progress, megabytes of it, on both streams.
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    for (int line = 0; line < 30000; ++line) {
        std::printf("progress %-60d\n", line);
        std::fprintf(stderr, "\033[32mdebug\033[0m %-60d\n", line);
    }
    compute(argv[1], argv[2]);
}
