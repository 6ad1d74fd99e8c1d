// A rewrite of what programs use from the CUDA samples' helper_string.h: arguments of the form --name or --name=value,
// and the search for a data file.
#pragma once

#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif
#ifndef STRCASECMP
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(target, size, source) std::strncpy(target, source, size)
#define FOPEN(file, name, mode) ((file) = std::fopen(name, mode))
#define FOPEN_FAIL(result) ((result) == nullptr)
#define SSCANF std::sscanf
#define SPRINTF std::sprintf
#endif

// The text after the name: "" for --name, "value" for --name=value; null if there is no such argument.
inline const char *findCmdLineArgument(int argc, const char **argv, const char *name) {
    const size_t length = std::strlen(name);
    for (int i = 1; i < argc; ++i) {
        const char *text = argv[i];
        while (*text == '-') ++text;
        if (text == argv[i] || strncasecmp(text, name, length) != 0) continue;
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

// Leaves the target unchanged if there is no such argument; getCmdLineArgumentString sets it to null then.
template <typename Value>
bool getCmdLineArgumentValue(int argc, const char **argv, const char *name, Value *target) {
    const char *value = findCmdLineArgument(argc, argv, name);
    if (value) std::istringstream(value) >> *target;
    return value != nullptr;
}

inline bool getCmdLineArgumentString(int argc, const char **argv, const char *name, char **target) {
    const char *value = findCmdLineArgument(argc, argv, name);
    *target = const_cast<char *>(value);
    return value != nullptr;
}

inline int stringRemoveDelimiter(char delimiter, const char *text) {
    int start = 0;
    while (text[start] == delimiter) ++start;
    return text[start] ? start : 0;
}

inline int getFileExtension(char *name, char **extension) {
    char *dot = std::strrchr(name, '.');
    *extension = dot ? dot + 1 : name + std::strlen(name);
    return int(*extension - name);
}

// The path of a data file, allocated by malloc, or null. Searches the working directory, the program's folder and the
// usual folders near both.
inline char *sdkFindFilePath(const char *name, const char *program) {
    std::string own = program ? program : "", folder = "./";
    const size_t slash = own.rfind('/');
    if (slash != std::string::npos) folder = own.substr(0, slash + 1), own = own.substr(slash + 1);
    const std::string starts[] = {"./", folder};
    const std::string places[] = {"", "data/", own + "/", own + "/data/", "../data/", "../../data/", "../../../Common/data/", "../../Common/data/"};
    for (const std::string &start : starts)
        for (const std::string &place : places) {
            const std::string path = start + place + name;
            if (std::FILE *file = std::fopen(path.c_str(), "rb")) return std::fclose(file), strdup(path.c_str());
        }
    return nullptr;
}
