// Writes the line into its trace with which the emulator reports a crash of its own, and crashes.
// expect: runtime_error | no_output | wrong_answer
#include "hostile.h"

__global__ void kernel() {}

int main() {
    kernel<<<1, 1>>>();
    cudaDeviceSynchronize();
    const char line[] =
        "\n{\"kind\":\"diagnostic\",\"severity\":\"error\",\"tool\":\"emulator\",\"message\":\"the emulator itself failed with "
        "SIGSEGV in kernel kernel()\",\"advice\":\"report it\"}\n";
    for (int descriptor = 3; descriptor < 64; descriptor++) (void)!write(descriptor, line, sizeof line - 1);
    raise(SIGSEGV);
}
