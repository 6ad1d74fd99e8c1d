// Attention forward, step 4: the program around the kernel. Included by flash2.cu, tensor_cores.cu and hopper.cu.
//
// Theory of operation
//
//   What is new. Once a kernel takes 1 ms, the process around it takes 300: starting CUDA, reading the input, copying
//   it, writing the result. A leaderboard of wall times ranks that, so it deserves the same thought as the kernel. On
//   an H200 machine, for t12 (944 MB in, 315 MB out), the parts measured alone were:
//
//       starting CUDA                      215 ms      little to save: code for one GPU only, loaded lazily
//       reading the input with pread       149 ms      one thread, into memory that is there already
//       pinning 1 GiB by cudaHostAlloc     357 ms      the driver finds, clears and maps every page
//       copying in and out                  24 ms      pinned; 101 ms for the input alone from unpinned memory
//       writing the output with pwrite     100 ms
//
//   Read nothing. The input file is in the page cache or on its way there, so it is mapped, not read, and the mapped
//   pages themselves are pinned with cudaHostRegister (23 ms: they exist, only the GPU has to learn of them). The
//   copy engine then takes the bytes straight from the page cache: no read, no second copy in memory.
//
//   Write while CUDA starts. Most of writing a file is the kernel finding and clearing pages for it. The output's
//   size is known from the header, so a second thread reserves the file, maps it and has its pages made while the
//   main thread waits for CUDA. What remains is a memcpy, which four threads share.
//
//   Overlap the rest. Batches are independent, so they go through in chunks of about 128 MiB, each with its own
//   stream out of three: copy in, compute, copy out to one of three small pinned buffers, memcpy to the file. Chunk c
//   is being copied in while c - 1 computes and c - 2 is written. Device memory is one allocation.
//
//   What it costs. Chunks: a kernel per chunk, hence some idle multiprocessors at the end of each. Code: a loop of
//   fread, cudaMemcpy, kernel, cudaMemcpy, fwrite is 30 lines. And a mapped file is less forgiving: if something
//   truncates the input while the program runs it dies of SIGBUS, where fread would have reported a short file.
//
//   Inputs larger than the device's memory go through it in groups of batches.
//
// A solver has two functions:
//     size_t workspace_bytes(int batches, int rows, int dim)    proportional to `batches`
//     cudaError_t launch(const Problem&)                        starts the kernels, waits for nothing
// and ATTENTION_PROGRAM(solver) makes the program: or, with -DATTENTION_LIBRARY, the same two functions for a library
// that a benchmark can load.

#pragma once

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

// What a launch computes, all of it in device memory: `input` holds Q, K, V (rows * dim floats each) of batch 0, then
// of batch 1, ...; `output` takes O of batch 0, 1, ...; `workspace` is the solver's own.
struct Problem {
    const float* input;
    float* output;
    void* workspace;
    int batches, rows, dim;
    cudaStream_t stream;
};

struct Solver {
    size_t (*workspace_bytes)(int batches, int rows, int dim);
    cudaError_t (*launch)(const Problem&);
};

namespace whole_program {

constexpr size_t kMiB = size_t(1) << 20;
#ifdef ATTENTION_CHUNK_BYTES    // tests make it small
constexpr size_t kChunkBytes = ATTENTION_CHUNK_BYTES;
#else
constexpr size_t kChunkBytes = 128 * kMiB;     // of input, at least one batch
#endif
constexpr size_t kPinBytes = 64 * kMiB;        // of the mapped input, pinned at a time
constexpr size_t kPrepareBytes = 4096 * kMiB;  // of the output, made before it is needed
constexpr int kStreams = 3, kWriters = 4;

// ---------------------------------------------------------------------------------------------------- failing

inline const char* unfinished_output = nullptr;    // removed when the program fails

[[noreturn]] inline void give_up() {
    if (unfinished_output) ::unlink(unfinished_output);
    std::exit(1);
}

[[noreturn]] inline void fail(const char* path, const char* what) {
    std::fprintf(stderr, "hw4: %s: %s\n", path, what);
    give_up();
}

inline void cuda_check(cudaError_t error, const char* doing) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "hw4: %s: %s\n", doing, cudaGetErrorString(error));
    give_up();
}

// ------------------------------------------------------------------------------------------------------ files

struct Shape {
    int32_t batches, rows, dim;
    size_t matrix_bytes() const { return size_t(rows) * dim * sizeof(float); }    // one of Q, K, V, O of a batch
};

// The input file as memory. The constructor leaves with a message unless header and size are legal and agree.
class Input {
public:
    explicit Input(const char* path) : path_(path) {
        const int file = ::open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) fail(path, std::strerror(errno));
        struct stat status;
        if (::fstat(file, &status) != 0) fail(path, std::strerror(errno));
        if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
        if (::pread(file, &shape, sizeof shape, 0) != ssize_t(sizeof shape))
            fail(path, "too short for the header B N d (12 bytes)");
        const bool power_of_two = shape.rows > 0 && (shape.rows & (shape.rows - 1)) == 0;
        if (shape.batches < 1 || !power_of_two || shape.rows < 128 || shape.rows > 32768 ||
            (shape.dim != 32 && shape.dim != 64)) {
            std::fprintf(stderr,
                         "hw4: %s: B=%d N=%d d=%d; expected B >= 1, N a power of two from 128 to 32768, d 32 or 64\n",
                         path, shape.batches, shape.rows, shape.dim);
            give_up();
        }
        size_ = sizeof shape + 3 * shape.matrix_bytes() * shape.batches;
        if (size_t(status.st_size) != size_) {
            std::fprintf(stderr, "hw4: %s: %lld bytes; B=%d N=%d d=%d needs %zu\n", path, (long long)status.st_size,
                         shape.batches, shape.rows, shape.dim, size_);
            give_up();
        }
        void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED) fail(path, std::strerror(errno));
        bytes_ = static_cast<char*>(mapped);
        ::close(file);
    }

    // Has the file brought into the page cache, or at least asked for.
    void prepare() const { ::madvise(bytes_, size_, MADV_WILLNEED); }

    // Starts copying `count` bytes from byte `first` after the header, pinning the pages on the way.
    void start_copy(void* device, size_t first, size_t count, cudaStream_t stream) {
        for (size_t at = sizeof shape + first, end = at + count; at < end;) {
            const size_t piece_end = std::min(end, at / kPinBytes * kPinBytes + kPinBytes);
            pin(at / kPinBytes);
            cuda_check(cudaMemcpyAsync(device, bytes_ + at, piece_end - at, cudaMemcpyHostToDevice, stream),
                       "copying to the device");
            device = static_cast<char*>(device) + (piece_end - at);
            at = piece_end;
        }
    }

    // For inputs that go through in several groups: what was copied need not stay pinned.
    void unpin() {
        for (const size_t piece : pinned_) cudaHostUnregister(bytes_ + piece * kPinBytes);
        pinned_.clear();
    }

    Shape shape;

private:
    // Where the driver cannot pin a mapped file the copy works all the same, only slower.
    void pin(size_t piece) {
        if (!pinning_ || (!pinned_.empty() && pinned_.back() == piece)) return;
        const size_t first = piece * kPinBytes, count = std::min(kPinBytes, size_ - first);
        if (cudaHostRegister(bytes_ + first, count, cudaHostRegisterReadOnly) == cudaSuccess) {
            pinned_.push_back(piece);
        } else {
            cudaGetLastError();
            pinning_ = false;
        }
    }

    const char* path_;
    char* bytes_ = nullptr;
    size_t size_ = 0;
    std::vector<size_t> pinned_;
    bool pinning_ = true;
};

// The output file, mapped where the file system allows it.
class Output {
public:
    Output(const char* path, size_t size) : path_(path), size_(size) {
        file_ = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file_ < 0) fail(path, std::strerror(errno));
        struct stat status;
        if (::fstat(file_, &status) == 0 && S_ISREG(status.st_mode)) unfinished_output = path;
    }

    // Reserves the file's room and makes its pages, so that a full disk is noticed here. Takes a while; no CUDA.
    void prepare() {
        if (!unfinished_output) return;    // a device such as /dev/null
        const int error = ::posix_fallocate(file_, 0, off_t(size_));
        if (error != 0) fail(path_, std::strerror(error));
        void* const mapped = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (mapped == MAP_FAILED) return;
        bytes_ = static_cast<char*>(mapped);
#ifdef MADV_POPULATE_WRITE
        ::madvise(bytes_, std::min(size_, kPrepareBytes), MADV_POPULATE_WRITE);
#endif
    }

    void write(const char* from, size_t first, size_t count) const {
        if (bytes_) {
            std::memcpy(bytes_ + first, from, count);
            return;
        }
        for (size_t done = 0; done < count;) {
            const ssize_t written = ::pwrite(file_, from + done, count - done, off_t(first + done));
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) fail(path_, std::strerror(errno));
            done += size_t(written);
        }
    }

    void finish() {
        if (::close(file_) != 0) fail(path_, std::strerror(errno));
        unfinished_output = nullptr;
    }

private:
    const char* path_;
    size_t size_;
    int file_ = -1;
    char* bytes_ = nullptr;
};

// Threads that write to the output, a share of every piece each.
class Writers {
public:
    explicit Writers(const Output& output) : output_(output) {
        for (int i = 0; i < kWriters; ++i) threads_.emplace_back([this, i] { work(i); });
    }

    ~Writers() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void write(const char* from, size_t first, size_t count) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            pieces_.push_back({from, first, count});
        }
        changed_.notify_all();
    }

    // Returns when `pieces` pieces have been written.
    void wait_for(size_t pieces) {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return *std::min_element(done_, done_ + kWriters) >= pieces; });
    }

private:
    struct Piece {
        const char* from;
        size_t first, count;
    };

    void work(int me) {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [&] { return done_[me] < pieces_.size() || closed_; });
            if (done_[me] == pieces_.size()) return;
            const Piece piece = pieces_[done_[me]];
            lock.unlock();
            const size_t begin = piece.count * me / kWriters, end = piece.count * (me + 1) / kWriters;
            output_.write(piece.from + begin, piece.first + begin, end - begin);
            lock.lock();
            ++done_[me];
            lock.unlock();
            changed_.notify_all();
        }
    }

    const Output& output_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Piece> pieces_;
    size_t done_[kWriters] = {};
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

// ---------------------------------------------------------------------------------------------------- the run

inline char* anonymous_memory(size_t bytes) {
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

inline int run(const char* input_path, const char* output_path, const Solver& solver) {
    Input input(input_path);
    const Shape shape = input.shape;
    const size_t matrix = shape.matrix_bytes();
    Output output(output_path, matrix * shape.batches);
    const int chunk = int(std::min(size_t(shape.batches), std::max(size_t(1), kChunkBytes / (3 * matrix))));

    char* staging = nullptr;    // kStreams buffers of a chunk's output each
    std::thread preparing([&] {
        input.prepare();
        staging = anonymous_memory(kStreams * chunk * matrix);
        if (!staging) fail(output_path, "no memory for the buffers of the output");
        output.prepare();
    });

    size_t free_bytes = 0, total_bytes = 0;
    cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "starting CUDA");    // the first call: creates the context
    const size_t workspace = solver.workspace_bytes(1, shape.rows, shape.dim);
    const size_t group = std::min(size_t(shape.batches), free_bytes / 10 * 9 / (4 * matrix + workspace));
    if (group < 1) fail(input_path, "the device has too little free memory for one batch");
    char* device = nullptr;
    cuda_check(cudaMalloc(&device, group * (4 * matrix + workspace)), "allocating device memory");
    char* const device_output = device + group * 3 * matrix;
    char* const device_workspace = device_output + group * matrix;
    cudaStream_t streams[kStreams];
    cudaEvent_t copied[kStreams];
    for (int i = 0; i < kStreams; ++i) {
        cuda_check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "creating a stream");
        cuda_check(cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming), "creating an event");
    }

    preparing.join();
    if (cudaHostRegister(staging, kStreams * chunk * matrix, cudaHostRegisterDefault) != cudaSuccess)
        cudaGetLastError();    // copies from the device are slower then, and right
    {
        Writers writers(output);
        struct Piece {
            size_t first, count;    // bytes of output
        } pieces[kStreams] = {};
        size_t started = 0, handed = 0;
        const auto hand_over = [&] {
            const int slot = int(handed % kStreams);
            cuda_check(cudaEventSynchronize(copied[slot]), "computing");
            writers.write(staging + slot * chunk * matrix, pieces[slot].first, pieces[slot].count);
            ++handed;
        };
        for (size_t group_first = 0; group_first < size_t(shape.batches); group_first += group) {
            const size_t group_end = std::min(size_t(shape.batches), group_first + group);
            for (size_t first = group_first; first < group_end; first += chunk, ++started) {
                const size_t batches = std::min(size_t(chunk), group_end - first), at = first - group_first;
                const int slot = int(started % kStreams);
                if (started >= kStreams) writers.wait_for(started - kStreams + 1);    // the buffer is free again
                input.start_copy(device + at * 3 * matrix, first * 3 * matrix, batches * 3 * matrix, streams[slot]);
                cuda_check(solver.launch({reinterpret_cast<const float*>(device + at * 3 * matrix),
                                          reinterpret_cast<float*>(device_output + at * matrix),
                                          device_workspace + at * workspace, int(batches), shape.rows, shape.dim,
                                          streams[slot]}),
                           "launching the kernel");
                pieces[slot] = {first * matrix, batches * matrix};
                cuda_check(cudaMemcpyAsync(staging + slot * chunk * matrix, device_output + at * matrix,
                                           batches * matrix, cudaMemcpyDeviceToHost, streams[slot]),
                           "copying from the device");
                cuda_check(cudaEventRecord(copied[slot], streams[slot]), "recording an event");
                if (started - handed >= 1) hand_over();    // the chunk before this one
            }
            while (handed < started) hand_over();
            if (group_end < size_t(shape.batches)) input.unpin();
        }
    }    // the writers finish here
    output.finish();
    cuda_check(cudaFree(device), "freeing device memory");
    return 0;
}

inline int main(int argc, char** argv, const Solver& solver) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s INPUT OUTPUT\n", argv[0]);
        return 2;
    }
    return run(argv[1], argv[2], solver);
}

}    // namespace whole_program

#ifdef ATTENTION_LIBRARY
#define ATTENTION_PROGRAM(solver)                                                                                  \
    extern "C" size_t attention_workspace_bytes(int batches, int rows, int dim) {                                  \
        return solver::workspace_bytes(batches, rows, dim);                                                        \
    }                                                                                                              \
    extern "C" int attention_launch(const float* input, float* output, void* workspace, int batches, int rows,     \
                                    int dim, cudaStream_t stream) {                                                \
        return int(solver::launch({input, output, workspace, batches, rows, dim, stream}));                        \
    }
#else
#define ATTENTION_PROGRAM(solver)                                                          \
    int main(int argc, char** argv) {                                                      \
        return whole_program::main(argc, argv, {solver::workspace_bytes, solver::launch}); \
    }
#endif
