/* Replays what the host code of a Python submission asked for. No code of the submission's host part runs here.
 *
 *     replay HOW PACKAGE INPUT OUTPUT       run the script that PACKAGE has for INPUT's header
 *     replay HOW --serve IN OUT             read commands from descriptor IN, answer on descriptor OUT
 *
 * HOW goes to the device: nothing for a GPU, the emulator's runtime for the emulator.
 *
 * Theory of operation
 *
 * A package begins with "grader-plans 2 HEADER_BYTES TEXT_BYTES\n". TEXT_BYTES of scripts follow, then blobs: constants and
 * kernels. A script begins with "shape HEX\n", HEX being the header's bytes, and ends with "end\n". The grader writes
 * packages from plans that it has checked (grader/plans/package.py), so numbers are believed here; a word that is not
 * understood ends the process.
 *
 *     blob OFFSET LENGTH                      the next blob
 *     at LINE FILE                            the submission's line that the following commands belong to
 *     argument BYTES NAME                     the next buffer, for these arguments of `solve`
 *     buffer BYTES                            the next buffer
 *     kernel NAME SHARED_BYTES BLOB           the next kernel
 *     input BUFFER FIRST                      fill a buffer from INPUT's byte FIRST on
 *     poison BUFFER                           fill an output with NaN
 *     constant BUFFER OFFSET BLOB
 *     fill BUFFER OFFSET WIDTH HEX COUNT
 *     copy BUFFER OFFSET BUFFER OFFSET BYTES  to, from
 *     launch KERNEL X Y Z THREADS SHARED CLUSTER COOPERATIVE COUNT then `v WIDTH HEX` or `p BUFFER OFFSET` for each argument
 *     output BUFFER                           append a buffer to OUTPUT, when all kernels have ended
 *     fail TEXT                               host code failed for this shape
 *
 * BLOB is the number of a blob in a package. With --serve it is - LENGTH, and the bytes follow the line. There are also
 *
 *     reset | free BUFFER | download BUFFER OFFSET BYTES | attributes | synchronize | event | elapsed BEGIN END | properties
 */
#include "device.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const size_t POISON_CHUNK = 8 << 20;

static std::string file_now;
static unsigned line_now;

void failed(const char *function, const char *why) {
    fflush(stdout);
    if (line_now)
        fprintf(stderr, "%s:%u: %s: %s\n", file_now.c_str(), line_now, function, why);
    else
        fprintf(stderr, "%s: %s\n", function, why);
    _exit(1);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

struct Bytes {
    const char *data;
    size_t size;
};

static Bytes mapped(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0 || fstat(file, &facts) != 0) failed(path, strerror(errno));
    if (facts.st_size == 0) return {"", 0};
    void *data = mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) failed(path, strerror(errno));
    close(file);
    return {(const char *)data, (size_t)facts.st_size};
}

static void write_all(int file, const char *data, size_t size, const char *what) {
    while (size > 0) {
        ssize_t count = write(file, data, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) failed(what, strerror(errno));
        data += count;
        size -= count;
    }
}

/* ---- words of a line -------------------------------------------------------------------------------------------- */

struct Line {
    const char *at;

    std::string word() {
        while (*at == ' ') at++;
        const char *begin = at;
        while (*at != ' ' && *at != '\n' && *at != '\0') at++;
        return std::string(begin, at);
    }
    uint64_t number(int base = 10) {
        char *end;
        errno = 0;
        uint64_t value = strtoull(at, &end, base);
        if (end == at || errno != 0) failed("replay", "a number was expected in the script");
        at = end;
        return value;
    }
    int64_t buffer() { /* -1 for a null pointer */
        while (*at == ' ') at++;
        if (*at != '-') return (int64_t)number();
        at++;
        return -(int64_t)number();
    }
    uint64_t bytes(unsigned &width) { /* WIDTH HEX: in the order of memory */
        width = number();
        return __builtin_bswap64(number(16)) >> 8 * (8 - width);
    }
};

/* ---- the replay ------------------------------------------------------------------------------------------------- */

struct Buffer {
    uint64_t address;
    size_t size;
};

static std::vector<Buffer> buffers;
struct Kernel {
    int number; /* on the device */
    std::vector<size_t> parameter_bytes;
};
static std::vector<Kernel> kernels;

static void new_buffer(size_t size) { buffers.push_back({size ? allocate(size) : 0, size}); }

static uint64_t address(Line &line) {
    int64_t buffer = line.buffer();
    uint64_t offset = line.number();
    if (buffer < 0) return 0;
    if ((size_t)buffer >= buffers.size()) failed("replay", "no such buffer");
    return buffers[buffer].address + offset;
}

static Buffer &buffer(Line &line) {
    size_t number = line.number();
    if (number >= buffers.size()) failed("replay", "no such buffer");
    return buffers[number];
}

static std::string joined(const std::vector<size_t> &bytes) {
    std::string text = std::to_string(bytes.size()) + (bytes.size() == 1 ? " argument" : " arguments");
    if (!bytes.empty() && bytes.size() <= 16) text += " of";
    for (size_t i = 0; i < bytes.size() && bytes.size() <= 16; i++) text += (i ? ", " : " ") + std::to_string(bytes[i]);
    return bytes.empty() ? text : text + (bytes.size() <= 16 ? " bytes" : "");
}

static void do_launch(Line &line) {
    static Launch made;
    size_t kernel = line.number();
    if (kernel >= kernels.size()) failed("replay", "no such kernel");
    for (unsigned &length : made.grid) length = line.number();
    made.threads = line.number();
    made.shared_bytes = line.number();
    made.cluster = line.number();
    made.cooperative = line.number() != 0;
    size_t count = line.number();
    std::vector<size_t> given;
    made.values.clear();
    for (size_t i = 0; i < count; i++) {
        if (line.word() == "p") {
            given.push_back(sizeof(uint64_t));
            made.values.push_back(address(line));
        } else {
            unsigned width;
            made.values.push_back(line.bytes(width));
            given.push_back(width);
        }
    }
    const std::vector<size_t> &expected = kernels[kernel].parameter_bytes;
    if (given != expected)
        failed("launch", ("the kernel takes " + joined(expected) + "; the launch passes " + joined(given)).c_str());
    launch(kernels[kernel].number, made);
}

/* Everything that both kinds of scripts have; false for another word. `blob` reads a reference to bytes. */
template <typename Blob> static bool common(const std::string &word, Line &line, Blob blob) {
    if (word == "launch") {
        do_launch(line);
    } else if (word == "at") {
        line_now = line.number();
        file_now = line.word();
        called_from(line_now ? file_now.c_str() : "", line_now);
    } else if (word == "buffer") {
        new_buffer(line.number());
    } else if (word == "kernel") {
        std::string name = line.word();
        unsigned shared_bytes = line.number();
        Bytes binary = blob(line);
        int number = load(name.c_str(), binary.data, binary.size, shared_bytes);
        kernels.push_back({number, parameter_bytes(number)});
    } else if (word == "constant") {
        uint64_t to = address(line);
        Bytes bytes = blob(line);
        upload(to, bytes.data, bytes.size);
    } else if (word == "fill") {
        uint64_t to = address(line);
        unsigned width;
        uint64_t pattern = line.bytes(width);
        fill(to, width, pattern, line.number());
    } else if (word == "copy") {
        uint64_t to = address(line), from = address(line);
        copy(to, from, line.number());
    } else {
        return false;
    }
    return true;
}

static void release_all() {
    for (Buffer &each : buffers)
        if (each.address) release(each.address);
    buffers.clear();
}

static void poison(const Buffer &of) {
    static const std::string chunk(POISON_CHUNK, '\xff');
    if (wants_poison())
        for (size_t done = 0; done < of.size; done += POISON_CHUNK)
            upload(of.address + done, chunk.data(), std::min(POISON_CHUNK, of.size - done));
}

static void write_output(const Buffer &of, int file) {
    line_now = 0;
    called_from("grader_main.cpp", 1); /* as in grader/programs/function_contract.py, and so is the name of an argument */
    synchronize();
    if (!of.size) return;
    char *data = (char *)malloc(of.size);
    if (!data) failed("replay", "no memory for the output");
    download(data, of.address, of.size);
    write_all(file, data, of.size, "OUTPUT");
    free(data);
}

static const char *script_for(const Bytes &scripts, const std::string &header) {
    const char *at = scripts.data, *end = at + scripts.size;
    std::string wanted = "shape " + header + "\n";
    while (at < end) {
        if ((size_t)(end - at) > wanted.size() && memcmp(at, wanted.data(), wanted.size()) == 0)
            return at + wanted.size();
        const char *next = (const char *)memmem(at, end - at, "\nend\n", 5);
        if (!next) break;
        at = next + 5;
    }
    failed("replay", "the package has no plan for this shape");
}

static int run(const char *package_path, const char *input_path, const char *output_path) {
    Bytes package = mapped(package_path), input = mapped(input_path);
    size_t header_bytes, text_bytes;
    int begin = 0;
    if (sscanf(package.data, "grader-plans 2 %zu %zu\n%n", &header_bytes, &text_bytes, &begin) != 2 || begin == 0)
        failed(package_path, "this is no package of plans");
    if (input.size < header_bytes) failed("INPUT", "it has no header");
    std::string header;
    for (size_t i = 0; i < header_bytes; i++) {
        char digits[3];
        snprintf(digits, sizeof digits, "%02x", (unsigned char)input.data[i]);
        header += digits;
    }
    Line line{script_for({package.data + begin, text_bytes}, header)};
    const char *blobs = package.data + begin + text_bytes;
    std::vector<Bytes> of_script;
    auto blob = [&](Line &of) {
        size_t number = of.number();
        if (number >= of_script.size()) failed("replay", "no such blob");
        return of_script[number];
    };
    int output = -1;
    for (;; line.at = strchr(line.at, '\n') + 1) {
        std::string word = line.word();
        if (word == "end") {
            release_all();
            break;
        }
        if (word == "fail") {
            const char *text = line.at + 1;
            fwrite(text, 1, strchr(text, '\n') - text, stderr);
            fputc('\n', stderr);
            return 1;
        }
        if (word == "blob") {
            size_t offset = line.number();
            of_script.push_back({blobs + offset, line.number()});
        } else if (word == "argument") {
            size_t size = line.number();
            called_from(("argument " + line.word()).c_str(), 1);
            new_buffer(size);
            called_from("", 0);
        } else if (word == "input") {
            Buffer &to = buffer(line);
            size_t first = line.number();
            if (first + to.size > input.size) failed("INPUT", "it ends early");
            if (to.size) upload(to.address, input.data + first, to.size);
        } else if (word == "poison") {
            poison(buffer(line));
        } else if (word == "output") {
            if (output < 0 && (output = open(output_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0)
                failed("OUTPUT", strerror(errno));
            write_output(buffer(line), output);
        } else if (!common(word, line, blob)) {
            failed("replay", ("the script has an unknown word, " + word).c_str());
        }
    }
    return 0;
}

/* ---- one command after the other -------------------------------------------------------------------------------- */

static void read_all(FILE *from, std::string &into, size_t size) {
    into.resize(size);
    if (size && fread(&into[0], 1, size, from) != size) failed("replay", "the commands end early");
}

static int serve(int commands, int answers) {
    FILE *in = fdopen(commands, "rb");
    if (!in) failed("--serve", strerror(errno));
    char *text = nullptr;
    size_t room = 0;
    std::string content;
    auto blob = [&](Line &of) {
        of.word();
        read_all(in, content, of.number());
        return Bytes{content.data(), content.size()};
    };
    while (getline(&text, &room, in) > 0) {
        Line line{text};
        std::string word = line.word();
        if (common(word, line, blob)) continue;
        if (word == "free") {
            Buffer &of = buffer(line);
            if (of.address) release(of.address);
            of.address = 0;
        } else if (word == "reset") {
            synchronize();
            release_all();
        } else if (word == "download") {
            uint64_t from = address(line);
            size_t size = line.number();
            content.resize(size);
            synchronize();
            if (size) download(&content[0], from, size);
            fflush(stdout);
            write_all(answers, "ok\n", 3, "answer");
            write_all(answers, content.data(), size, "answer");
        } else if (word == "attributes") {
            Attributes found = attributes(kernels.back().number);
            dprintf(answers, "%d %d %d\n", found.registers, found.local_bytes / 4, found.most_threads);
        } else if (word == "synchronize") {
            synchronize();
            fflush(stdout);
            dprintf(answers, "ok\n");
        } else if (word == "event") {
            new_event();
        } else if (word == "elapsed") {
            int begin = line.number(), end = line.number();
            dprintf(answers, "%.9g\n", elapsed_ms(begin, end));
        } else if (word == "properties") {
            print_properties(answers);
            dprintf(answers, "\n");
        } else {
            failed("replay", ("unknown command " + word).c_str());
        }
    }
    line_now = 0;
    synchronize();
    release_all(); /* else the emulator reports the memory of tensors that live until the end */
    return 0;
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "usage: replay HOW PACKAGE INPUT OUTPUT, or replay HOW --serve IN OUT\n");
        return 2;
    }
    open_device(words[1]);
    int code = strcmp(words[2], "--serve") == 0 ? serve(atoi(words[3]), atoi(words[4])) : run(words[2], words[3], words[4]);
    fflush(stdout);
    return code;
}
