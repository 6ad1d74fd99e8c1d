// Writes 400 MB into a folder that nobody may look into.
// expect: runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const std::vector<char> block(1 << 20, 7);
    mkdir("locked", 0700);
    std::vector<int> files;
    for (int file = 0; file < 8; ++file)
        files.push_back(open(("locked/" + std::to_string(file)).c_str(), O_CREAT | O_RDWR, 0600));
    for (int i = 0; i < 50; ++i)
        for (const int fd : files) {
            chmod("locked", i % 2 ? 0 : 0444);
            if (write(fd, block.data(), block.size()) < 0) break;
        }
    write_right(argv[1], argv[2]);
    sleep(1);
    return 0;
}
