// Gives CUPTI a clock of its own for its timestamps, a thousand times too slow.
// expect: passed; gpu; on t23; at least 11 ms
#include "hostile_attention.h"
#include "hostile_cupti.h"

static uint64_t slow() {
    static const long long began = realtime_ns();
    return began + (realtime_ns() - began) / 1000;
}

int main(int, char** argv) {
    cudaFree(nullptr);
    slow();
    if (const auto set = cupti<int (*)(uint64_t (*)())>("cuptiActivityRegisterTimestampCallback")) set(slow);
    const OnDevice data(argv[1]);
    data.compute(data.shape.batches);
    data.write(argv[2]);
}
