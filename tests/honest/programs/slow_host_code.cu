// Formats and parses two million numbers on the host, for no good reason: a second of processor time.
#include "honest.h"

int main(int argc, char** argv) {
    double sum = 0;
    for (int i = 0; i < 2000000; ++i) {
        char text[32];
        std::snprintf(text, sizeof text, "%.9g", i * 0.37);
        sum += std::strtod(text, nullptr);
    }
    std::printf("checksum %.17g\n", sum);
    if (argc != 3) return 2;
    compute(argv[1], argv[2]);
}
