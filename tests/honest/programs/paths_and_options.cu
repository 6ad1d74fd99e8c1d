// Looks at its arguments closely: makes paths absolute, looks for options, asks for sizes, notes the time.
#include "honest.h"
#include <climits>
#include <ctime>
#include <getopt.h>
#include <string>
#include <sys/stat.h>

int main(int argc, char** argv) {
    int option;
    while ((option = getopt(argc, argv, "v")) != -1)
        if (option == 'v') std::puts("attention 1.0");
    if (argc - optind != 2) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    char path[PATH_MAX];
    struct stat facts;
    if (!realpath(argv[optind], path) || stat(path, &facts) != 0) return 1;
    const std::time_t now = std::time(nullptr);
    std::printf("%s: %lld bytes, read at %s", path, (long long)facts.st_size, std::ctime(&now));
    compute(path, std::string(argv[optind + 1]).c_str());
}
