// Writes 400 MB into its own folder.
// expect: runtime_error
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    std::vector<char> block(1 << 20, 'x');
    for (int number = 0; number < 8; ++number) {
        const int file = open(("flood" + std::to_string(number)).c_str(), O_CREAT | O_WRONLY, 0666);
        for (int i = 0; i < 50; ++i) write(file, block.data(), block.size());
    }
    return 0;
}
