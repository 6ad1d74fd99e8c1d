// Makes 40,000 empty files.
// expect: runtime_error | time_limit
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    for (int i = 0; i < 40000; ++i) close(open(("empty" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0));
    return 0;
}
