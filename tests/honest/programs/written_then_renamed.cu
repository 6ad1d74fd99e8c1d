// The output is written under another name and renamed when it is complete.
#include <string>
#include "honest.h"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string unfinished = std::string(argv[2]) + ".part";
    compute(argv[1], unfinished.c_str());
    return std::rename(unfinished.c_str(), argv[2]);
}
