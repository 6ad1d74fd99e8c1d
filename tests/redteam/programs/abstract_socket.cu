// Leaves a daemon that listens on an abstract socket, and talks to the one of the run before.
// expect: wrong_answer
#include "hostile.h"
#include <stddef.h>

int main(int, char** argv) {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    memcpy(name.sun_path, "\0redteam-daemon", 15);
    const socklen_t size = offsetof(sockaddr_un, sun_path) + 15;
    const int caller = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(caller, (sockaddr*)&name, size) == 0) BYPASSED("the daemon of another run answers");
    const char runners[] = "\0redteam-canary";
    memcpy(name.sun_path, runners, sizeof runners - 1);
    const socklen_t whole = offsetof(sockaddr_un, sun_path) + sizeof runners - 1;
    if (connect(socket(AF_UNIX, SOCK_STREAM, 0), (sockaddr*)&name, whole) == 0) BYPASSED("reached the runner's socket");
    leave_daemon([=] {
        sockaddr_un mine = name;
        memcpy(mine.sun_path, "\0redteam-daemon", 15);
        const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        bind(listener, (const sockaddr*)&mine, size);
        listen(listener, 4);
        sleep(20);
    });
    write_zeros(argv[1], argv[2]);
    return 0;
}
