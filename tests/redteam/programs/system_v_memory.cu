// Leaves its answer in System V shared memory and a message queue.
// expect: wrong_answer
#include "hostile.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/shm.h>

int main(int, char** argv) {
    if (shmget(0x5ed7ea3, 4096, 0) >= 0) BYPASSED("the segment of another run is here");
    shmget(0x5ed7ea3, 4096, IPC_CREAT | 0666);
    if (msgget(0x5ed7ea3, 0) >= 0) BYPASSED("the queue of another run is here");
    msgget(0x5ed7ea3, IPC_CREAT | 0666);
    write_zeros(argv[1], argv[2]);
    return 0;
}
