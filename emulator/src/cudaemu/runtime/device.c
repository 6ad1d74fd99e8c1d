/* The emulated GPUs. Limits: CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per
 * Compute Capability". Sizes and clocks: NVIDIA's data sheets of the A100 40 GB, the L40S and the H200; those of the H200
 * were compared with what its driver reports. */

#include "device.h"

#define KIB 1024u
static const struct device_facts devices[] = {
    {"Emulated sm_80", 80, 108, 2048, 32, 164 * KIB, 163 * KIB, 40u << 20, 5120, 1410000, 1215000},
    {"Emulated sm_89", 89, 142, 1536, 24, 100 * KIB, 99 * KIB, 96u << 20, 384, 2520000, 9001000},
    {"Emulated sm_90a", 90, 132, 2048, 32, 228 * KIB, 227 * KIB, 60u << 20, 6144, 1980000, 3201000},
};
const struct device_facts *gpu;

/* The architecture that a program is compiled for. The program's modules define this variable too; the linker takes their
 * definition, because this one is weak. */
__attribute__((weak)) uint32_t emulated_architecture = 80;

__attribute__((constructor(101))) static void choose(void) {
    for (uint32_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (i == 0 || devices[i].architecture <= emulated_architecture) gpu = &devices[i];
}
