// The output is a socket.
// expect: no_output
#include "hostile.h"

int main(int, char** argv) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    chdir("."), strcpy(name.sun_path, "output");
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr*)&name, sizeof name) != 0) return 1;
    return 0;
}
