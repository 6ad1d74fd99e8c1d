// Writes kernels into its trace whose names are escapes, HTML, formulas, paths, and 3,000 characters.
// expect: passed; flagged
#include "hostile_attention.h"

int main(int, char** argv) {
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1;
    const std::string names[] = {"\\u001b[2J\\u001b]0;x\\u0007", "<script>alert(1)</script>", "=cmd|'/c calc'!A1", "../../../etc/passwd",
                                 "| a | b |\\n|---|---|", "\\u202egnorw\\u2066", "\\ud800", "[x](javascript:alert(1))", std::string(3000, 'n')};
    write_trace(fd, realtime_ns(), 1000);
    for (const std::string& name : names)
        dprintf(fd, "{\"kind\":\"kernel\",\"name\":\"%s\",\"grid\":[64,1,1],\"block\":[128,1,1],\"registers\":32,\"static_shared_bytes\":0,"
                    "\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":%lld,\"end_ns\":%lld,\"stream\":7,\"counters\":{}}\n",
                name.c_str(), realtime_ns(), realtime_ns() + 1000);
    write_trace(fd, realtime_ns(), 1000);
    write_right(argv[1], argv[2]);
}
