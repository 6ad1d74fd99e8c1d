// Takes 2.5 GiB of System V shared memory and detaches it, so that no process shows it as its own.
// expect: memory_limit | passed
#include "hostile.h"
#include <sys/ipc.h>
#include <sys/shm.h>

int main(int, char** argv) {
    size_t taken = 0;
    std::vector<int> segments;
    for (int i = 0; i < 80; ++i) {
        const int id = shmget(IPC_PRIVATE, 32 << 20, IPC_CREAT | 0600);
        void* const memory = id < 0 ? (void*)-1 : shmat(id, nullptr, 0);
        if (memory == (void*)-1) break;
        memset(memory, 7, 32 << 20);
        shmdt(memory);
        segments.push_back(id);
        taken += 32 << 20;
    }
    sleep(1);
    for (const int id : segments) shmctl(id, IPC_RMID, nullptr);
    if (taken > size_t(2) << 30) BYPASSED("took %zu bytes", taken);
    write_right(argv[1], argv[2]);
    return 0;
}
