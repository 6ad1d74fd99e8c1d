// What the hostile programs share: a right answer computed on the CPU (for inputs of a few megabytes), and how an attack
// reports that it worked.
//
// A program's first line says what it tries, its second what must become of it:
//
//     // expect: VERDICT [| VERDICT …] [; gpu] [; flagged] [; on TESTS] [; occupancy X] [; at least N ms] [; within N s]
//                        [; no place] [; verdict only] [; single file] [; under rules]
//
// `gpu`: it means something on a GPU only. `flagged`: its output is right, and its times must not count. `on`: the
// testcases that it is run on, instead of s01 and s02. `occupancy`: the most it may be taken for. `at least`: no time
// below that may count. `no place`: its time, if it has one, gives none on a leaderboard. `within`: the processor
// time, or with many cores the wall time, that its grading takes at most; and an eighth of the wall time. `verdict
// only`: of hidden tests a student may read the verdict alone, so nothing that the program says. `single file`: it is
// handed in as a file, next to others' work.
// `under rules`: calls of system and absolute includes are refused. An attack that gets what it wants says so with
// BYPASSED(...); then it has bypassed us, whatever the verdict. What it leaves behind is looked for by the runner. Every
// program is bounded: run bare, none takes more than 3 GiB, 3000 processes or 400 MB of disk, and none touches what it
// did not make, but for the canaries of the runner (all called redteam-canary).
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define BYPASSED(...) (printf("BYPASSED: " __VA_ARGS__), printf("\n"), fflush(stdout))

struct Shape {
    int batches, n, d;
    size_t count() const { return size_t(batches) * n * d; }
};

inline Shape shape_of(const char* input) {
    Shape shape = {0, 0, 0};
    FILE* const file = fopen(input, "rb");
    if (!file || fread(&shape, 4, 3, file) != 3) exit(1);
    fclose(file);
    return shape;
}

inline void write_values(const char* output, const std::vector<float>& values) {
    FILE* const file = fopen(output, "wb");
    if (!file || fwrite(values.data(), 4, values.size(), file) != values.size() || fclose(file) != 0) exit(1);
}

inline void write_zeros(const char* input, const char* output) {
    write_values(output, std::vector<float>(shape_of(input).count()));
}

// O of the whole input.
inline std::vector<float> right_answer(const char* input) {
    const Shape shape = shape_of(input);
    const int n = shape.n, d = shape.d;
    std::vector<float> values(3 * shape.count()), result(shape.count());
    FILE* const file = fopen(input, "rb");
    fseek(file, 12, SEEK_SET);
    if (fread(values.data(), 4, values.size(), file) != values.size()) exit(1);
    fclose(file);
    const auto compute = [&](int batch) {
        std::vector<float> weights(n);
        const float *q = &values[size_t(batch) * 3 * n * d], *k = q + size_t(n) * d, *v = k + size_t(n) * d;
        for (int row = 0; row < n; ++row) {
            float top = -INFINITY, total = 0;
            for (int key = 0; key < n; ++key) {
                float s = 0;
                for (int x = 0; x < d; ++x) s += q[row * d + x] * k[key * d + x];
                weights[key] = s / sqrtf(float(d));
                top = fmaxf(top, weights[key]);
            }
            float* const o = &result[(size_t(batch) * n + row) * d];
            for (int key = 0; key < n; ++key) {
                const float p = expf(weights[key] - top);
                total += p;
                for (int x = 0; x < d; ++x) o[x] += p * v[key * d + x];
            }
            for (int x = 0; x < d; ++x) o[x] /= total;
        }
    };
    if (shape.count() < 1 << 17) {    // without threads: some attacks leave no room for any
        for (int batch = 0; batch < shape.batches; ++batch) compute(batch);
        return result;
    }
    std::vector<std::thread> threads;
    for (int first = 0; first < 16; ++first)
        threads.emplace_back([&, first] { for (int batch = first; batch < shape.batches; batch += 16) compute(batch); });
    for (auto& thread : threads) thread.join();
    return result;
}

inline void write_right(const char* input, const char* output) { write_values(output, right_answer(input)); }

inline std::string contents(const std::string& path, size_t most = 1 << 20) {
    std::string text;
    FILE* const file = fopen(path.c_str(), "rb");
    if (!file) return text;
    text.resize(most);
    text.resize(fread(&text[0], 1, most, file));
    fclose(file);
    return text;
}

// Calls `found` with every path below `folder` that is no folder; not in /proc, /sys and /usr.
inline void walk(const std::string& folder, const std::function<void(const std::string&)>& found, int depth = 0) {
    if (depth > 12 || folder == "/proc" || folder == "/sys" || folder == "/usr") return;
    DIR* const entries = opendir(folder.c_str());
    if (!entries) return;
    while (const dirent* entry = readdir(entries)) {
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        const std::string path = (folder == "/" ? "" : folder) + "/" + name;
        struct stat facts;
        if (lstat(path.c_str(), &facts) != 0) continue;
        if (S_ISDIR(facts.st_mode))
            walk(path, found, depth + 1);
        else if (S_ISREG(facts.st_mode))
            found(path);
    }
    closedir(entries);
}

// A process that is nobody's child, in a session of its own; `work` runs in it a second after we have ended.
inline void leave_daemon(const std::function<void()>& work) {
    const pid_t parent = getpid();
    if (fork() != 0) return;
    setsid();
    if (fork() != 0) _exit(0);
    for (int wait = 0; wait < 2000 && kill(parent, 0) == 0; ++wait) usleep(1000);
    sleep(1);    // until the run has ended, its clock runs, so what is done at once gains nothing
    work();
    _exit(0);
}

// Every process in sight but ours and process 1, which is the sandbox's.
inline std::vector<int> other_processes() {
    std::vector<int> found;
    DIR* const entries = opendir("/proc");
    while (const dirent* entry = entries ? readdir(entries) : nullptr) {
        const int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid()) found.push_back(pid);
    }
    if (entries) closedir(entries);
    return found;
}

// The program's name for itself in the process list.
inline void call_myself(const char* name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
