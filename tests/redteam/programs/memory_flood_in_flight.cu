// Sends files in memory, 1.5 GiB of them, to itself and closes them: no process has them open.
// expect: memory_limit | passed | runtime_error
#include "hostile.h"

int main(int, char** argv) {
    const std::string data(32 << 20, 'x');
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return 1;
    for (int i = 0; i < 48; ++i) {
        const int fd = memfd_create("sent", 0);
        if (write(fd, data.data(), data.size()) < 0) break;
        char byte = 0, space[CMSG_SPACE(sizeof(int))] = {};
        iovec part = {&byte, 1};
        msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = space;
        message.msg_controllen = sizeof space;
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
        if (sendmsg(pair[0], &message, MSG_DONTWAIT) < 0) break;
        close(fd);
    }
    sleep(1);
    write_right(argv[1], argv[2]);
}
