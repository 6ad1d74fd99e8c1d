// A child without the tracer computes; the program itself launches a decoy. Without the child there is no output.
// expect: no_output | wrong_answer | runtime_error; gpu; on t23
#include "hostile_attention.h"
#include <spawn.h>

int main(int count, char** argv) {
    if (count == 4) {
        const OnDevice data(argv[1]);
        data.compute(data.shape.batches);
        data.write(argv[2]);
        return 0;
    }
    char child[] = "child";
    char* words[] = {argv[0], argv[1], argv[2], child, nullptr};
    char* environment[] = {nullptr};
    pid_t pid;
    const bool started = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, words, environment) == 0;
    decoy<<<1, 32>>>(nullptr, kDecoyNs);
    cudaDeviceSynchronize();
    if (started) waitpid(pid, nullptr, 0);
    return 0;
}
