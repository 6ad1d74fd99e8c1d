// Leaves files whose names are no text: bytes that no encoding has, line ends, escapes, 255 bytes, folders in folders.
// expect: passed
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    for (const std::string& name : {std::string("\xff\xfe\x80"), std::string("a\nb"), std::string("\033[2J"), std::string(255, '\xff'),
                                    std::string("-rf"), std::string("*"), std::string("..."), std::string("\xed\xa0\x80")}) {
        close(open(name.c_str(), O_WRONLY | O_CREAT, 0));
        const std::string folder = name.substr(0, 200) + "d";
        if (mkdir(folder.c_str(), 0700) == 0) close(open((folder + "/" + name).c_str(), O_WRONLY | O_CREAT, 0600)), chmod(folder.c_str(), 0);
    }
}
