// Changes the GPU's clocks, power limit, compute mode and counters' permissions through NVML.
// expect: wrong_answer; gpu
#include "hostile.h"
#include <dlfcn.h>

int main(int, char** argv) {
    void* const nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    const auto find = [&](const char* name) { return nvml ? dlsym(nvml, name) : nullptr; };
    void* device = nullptr;
    const auto init = (int (*)())find("nvmlInit_v2");
    const auto handle = (int (*)(unsigned, void**))find("nvmlDeviceGetHandleByIndex_v2");
    if (init && handle && init() == 0 && handle(0, &device) == 0) {
        unsigned mode = 0;
        const auto get_mode = (int (*)(void*, unsigned*))find("nvmlDeviceGetPersistenceMode");
        const auto set_mode = (int (*)(void*, unsigned))find("nvmlDeviceSetPersistenceMode");
        // What is set is what there is already: whoever may set that may set anything.
        if (get_mode && set_mode && get_mode(device, &mode) == 0 && set_mode(device, mode) == 0) BYPASSED("persistence mode was set");
        const auto get_compute = (int (*)(void*, unsigned*))find("nvmlDeviceGetComputeMode");
        const auto set_compute = (int (*)(void*, unsigned))find("nvmlDeviceSetComputeMode");
        if (get_compute && set_compute && get_compute(device, &mode) == 0 && set_compute(device, mode) == 0) BYPASSED("compute mode was set");
        const auto get_power = (int (*)(void*, unsigned*))find("nvmlDeviceGetPowerManagementLimit");
        const auto set_power = (int (*)(void*, unsigned))find("nvmlDeviceSetPowerManagementLimit");
        if (get_power && set_power && get_power(device, &mode) == 0 && set_power(device, mode) == 0) BYPASSED("the power limit was set");
    }
    write_zeros(argv[1], argv[2]);
}
