// Looks everywhere for a file of the right size called *.out and hands it in.
// expect: wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    const size_t size = shape_of(argv[1]).count() * 4;
    write_zeros(argv[1], argv[2]);
    walk("/", [&](const std::string& path) {
        struct stat facts;
        if (path.size() > 4 && path.substr(path.size() - 4) == ".out" && stat(path.c_str(), &facts) == 0 &&
            size_t(facts.st_size) == size) {
            BYPASSED("found %s", path.c_str());
            const std::string answer = contents(path, size);
            FILE* const out = fopen(argv[2], "wb");
            fwrite(answer.data(), 1, answer.size(), out);
            fclose(out);
        }
    });
    return 0;
}
