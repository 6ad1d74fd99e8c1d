// Connects to loopback, to the world, to the host of a virtual machine.
// expect: wrong_answer
#include "hostile.h"
#include <arpa/inet.h>
#include <netinet/in.h>

int main(int, char** argv) {
    sockaddr_in local = {};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int port : {47321, 22, 80, 5432}) {
        local.sin_port = htons(port);
        if (connect(socket(AF_INET, SOCK_STREAM, 0), (sockaddr*)&local, sizeof local) == 0) BYPASSED("port %d", port);
    }
    local.sin_addr.s_addr = htonl(0x01010101);
    local.sin_port = htons(53);
    if (sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (sockaddr*)&local, sizeof local) > 0) BYPASSED("sent a packet");
    for (int family : {AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_TIPC})
        if (socket(family, SOCK_STREAM, 0) >= 0 || socket(family, SOCK_DGRAM, 0) >= 0 || socket(family, SOCK_SEQPACKET, 0) >= 0) BYPASSED("socket of family %d", family);
    write_zeros(argv[1], argv[2]);
    return 0;
}
