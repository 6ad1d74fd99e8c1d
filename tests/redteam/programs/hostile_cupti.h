// Functions of the CUPTI that the tracer has loaded, for attacks on it. (cupti_activity.h, cupti_result.h.)
#pragma once
#include "hostile.h"
#include <dlfcn.h>
#include <link.h>

struct Library {
    std::string path;
    char* code = nullptr;
    size_t size = 0;
};

// The loaded library whose path holds `word`, with the code in it.
inline Library loaded(const char* word) {
    static const char* wanted;
    wanted = word;
    Library found;
    dl_iterate_phdr([](dl_phdr_info* info, size_t, void* into) {
        if (!strstr(info->dlpi_name, wanted)) return 0;
        Library& library = *(Library*)into;
        library.path = info->dlpi_name;
        for (int i = 0; i < info->dlpi_phnum; ++i)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
                library.code = (char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                library.size = info->dlpi_phdr[i].p_memsz;
            }
        return 1;
    }, &found);
    return found;
}

template <typename Function> Function cupti(const char* name) {
    void* const library = dlopen(loaded("libcupti").path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    return library ? (Function)dlsym(library, name) : nullptr;
}
