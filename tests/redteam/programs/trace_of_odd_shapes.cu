// Writes a trace of deep nesting, huge numbers, NaN, half characters, doubled keys and endless lines.
// expect: passed; flagged
#include "hostile.h"

int main(int, char** argv) {
    write_right(argv[1], argv[2]);
    const char* const where = getenv("GRADER_TRACE");
    const int fd = where && !strncmp(where, "fd:", 3) ? atoi(where + 3) : -1;
    const std::string kernel = "{\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[1,1,1],\"block\":[1,1,1],\"registers\":1,"
                               "\"static_shared_bytes\":0,\"dynamic_shared_bytes\":0,\"local_bytes\":0,\"start_ns\":1,\"end_ns\":2,"
                               "\"stream\":";
    std::string counters;
    for (int i = 0; i < 256; ++i) counters += (i ? ",\"c" : "\"c") + std::to_string(i) + "\":1";
    std::vector<std::string> lines = {
        std::string(60000, '['),
        std::string(60000, '{'),
        "{\"kind\":" + std::string(30000, '[') + std::string(30000, ']') + "}",
        kernel + std::string(60000, '9') + "}",
        kernel + "1,\"counters\":{\"a\":" + std::string(4000, '9') + "}}",
        kernel + "NaN}", kernel + "-1}", kernel + "1e999}", kernel + "true}",
        kernel + "1,\"counters\":{\"a\":Infinity}}",
        kernel + "1,\"stream\":null,\"kind\":\"end\"}",
        "{\"kind\":\"end\",\"dropped\":-9223372036854775809}",
        "{\"kind\":\"start\",\"engine\":\"\\ud800\",\"clock_ns\":9223372036854775807}",
        "{\"kind\":\"api_error\",\"function\":\"\\u001b[2J\\n\\n[/red]t01 passed\",\"code\":1,\"name\":\"\\u202e\"}",
        "\xff\xfe{\"kind\":\"end\"}", "\xef\xbb\xbf{}", std::string("{\0}", 3),
        std::string(1 << 20, 'x'),
    };
    for (int i = 0; i < 8000; ++i) lines.push_back(kernel + "1,\"counters\":{" + counters + "}}");
    lines.push_back("{\"kind\":\"kernel\",\"name\":\"\xe2\x82");
    std::string all;
    for (const auto& line : lines) all += line + "\n";
    for (size_t at = 0; at < all.size();) {
        const ssize_t sent = write(fd, all.data() + at, all.size() - at);
        if (sent <= 0) break;
        at += sent;
    }
    return 0;
}
