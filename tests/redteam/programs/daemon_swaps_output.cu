// A daemon keeps exchanging the output for links, pipes and folders.
// expect: passed | no_output | wrong_answer
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const std::string output = argv[2];
    leave_daemon([=] {
        for (int i = 0; i < 20000; ++i) {
            unlink(output.c_str()); symlink("/etc/passwd", output.c_str());
            unlink(output.c_str()); mkfifo(output.c_str(), 0666);
            unlink(output.c_str()); mkdir(output.c_str(), 0777); rmdir(output.c_str());
        }
    });
    usleep(20000);
    return 0;
}
