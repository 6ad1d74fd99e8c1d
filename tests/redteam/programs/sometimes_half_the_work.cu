// Throws dice: in two runs of three it leaves half of the batches out.
// expect: passed | wrong_answer; gpu; on t23; at least 11 ms
#include "hostile_attention.h"

int main(int, char** argv) {
    const OnDevice data(argv[1]);
    data.compute(realtime_ns() / 1000 % 3 ? data.shape.batches / 2 : data.shape.batches);
    data.write(argv[2]);
}
