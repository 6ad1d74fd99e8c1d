// What homework uses of the CUDA samples' helper_string.h, written anew: arguments of the form --name or --name=value.
#pragma once

#include <cstdlib>
#include <cstring>

// What follows the name: "" for --name, "value" for --name=value; null when there is no such argument.
inline const char *findCmdLineArgument(int argc, const char **argv, const char *name) {
    const size_t length = std::strlen(name);
    for (int i = 1; i < argc; ++i) {
        const char *text = argv[i];
        while (*text == '-') ++text;
        if (text == argv[i] || std::strncmp(text, name, length) != 0) continue;
        if (text[length] == '\0') return text + length;
        if (text[length] == '=') return text + length + 1;
    }
    return nullptr;
}

inline bool checkCmdLineFlag(int argc, const char **argv, const char *name) {
    return findCmdLineArgument(argc, argv, name) != nullptr;
}

inline int getCmdLineArgumentInt(int argc, const char **argv, const char *name) {
    const char *value = findCmdLineArgument(argc, argv, name);
    return value ? std::atoi(value) : 0;
}

inline float getCmdLineArgumentFloat(int argc, const char **argv, const char *name) {
    const char *value = findCmdLineArgument(argc, argv, name);
    return value ? float(std::atof(value)) : 0.0f;
}
