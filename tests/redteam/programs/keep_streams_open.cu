// Hides the ends of its trace and its output in sockets that are in flight in one another: readers never see an end.
// expect: passed; flagged; within 40 s
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 1;
    std::vector<int> open = {pair[0], pair[1]};
    for (int fd = 1; fd < 64; ++fd)
        if (fcntl(fd, F_GETFD) >= 0 && fd != pair[0] && fd != pair[1]) open.push_back(fd);
    char byte = 0, space[CMSG_SPACE(64 * sizeof(int))] = {};
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(open.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(open.size() * sizeof(int));
    memcpy(CMSG_DATA(header), open.data(), open.size() * sizeof(int));
    if (sendmsg(pair[0], &message, 0) < 0) perror("sendmsg");
    return 0;
}
