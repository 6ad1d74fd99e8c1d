// Counts its runs wherever it can leave a mark, and from the fifth on computes nothing.
// expect: passed | wrong_answer; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

static int runs() {
    int most = 0;
    for (const char* folder : {"/dev/shm", "/tmp", "/var/tmp", ".", "..", "/run", "/proc/self/cwd/../.."}) {
        const std::string path = std::string(folder) + "/redteam-canary-runs";
        FILE* const file = fopen(path.c_str(), "a");
        if (!file) continue;
        fputc('x', file);
        fclose(file);
        most = std::max(most, (int)contents(path).size());
    }
    return most;
}

int main(int, char** argv) {
    const int run = runs();
    const OnDevice data(argv[1]);
    if (run > 1) BYPASSED("this is run %d", run);
    data.compute(run < 5 ? data.shape.batches : 1);
    data.write(argv[2]);
}
