// Kernels whose names tools spell in different ways: in an unnamed namespace, with template arguments of all kinds,
// overloaded, of C linkage, of one file alone, thousands of characters long. Batch b is computed by kernel b modulo their
// number. All of them have to be measured.
#include "honest.h"

#define ROW blockIdx.x * size_t(blockDim.x / 32) + threadIdx.x / 32
#define PARAMETERS const float *input, float *output, int n
#define BODY                        \
    const size_t row = ROW;         \
    if (row < size_t(n)) attention_row<D>(input, output, n, row)

namespace homework { namespace {
template <int D, typename... Unused>
__global__ void unnamed(PARAMETERS, Unused...) { BODY; }
} }

enum class Mode : short { plain = -1, causal = 7 };
template <int D, bool Checked> __global__ void with_bool(PARAMETERS) { BODY; }
template <int D, Mode> __global__ void with_enum(PARAMETERS) { BODY; }
template <int D, char, unsigned long long> __global__ void with_integers(PARAMETERS) { BODY; }

template <int D, typename Pointer> __global__ void with_pointer(PARAMETERS, Pointer) { BODY; }
template <int D, float (*)(float, float)> __global__ void with_function(PARAMETERS) { BODY; }

struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
typedef struct { int unused; } Untagged;
template <int D, typename Operator> __global__ void with_operator(PARAMETERS, Operator) { BODY; }
template <int D, template <typename...> class Holder> __global__ void with_template(PARAMETERS, Holder<float> = {}) { BODY; }

template <int D> __global__ void overloaded(PARAMETERS, int) { BODY; }
template <int D> __global__ void overloaded(PARAMETERS, float) { BODY; }

extern "C" __global__ void c_32(PARAMETERS) { constexpr int D = 32; BODY; }
extern "C" __global__ void c_64(PARAMETERS) { constexpr int D = 64; BODY; }
static __global__ void alone_32(PARAMETERS) { constexpr int D = 32; BODY; }
static __global__ void alone_64(PARAMETERS) { constexpr int D = 64; BODY; }

template <typename First = int, typename Second = int> struct Pair {};
template <typename Type> struct Doubled { using type = Pair<Type, Type>; };
using Four = Doubled<Doubled<Doubled<Doubled<Pair<>>::type>::type>::type>::type;
using Long = Doubled<Doubled<Doubled<Four>::type>::type>::type; // 256 times Pair

namespace outer { inline namespace version { namespace inner {
template <int D> __global__ void nested(PARAMETERS) { BODY; }
} } }

constexpr int kKernels = 16;

template <int D>
void launch_kernel(int kernel, const float* in, float* out, int n) {
    const unsigned blocks = unsigned((n + kWarps - 1) / kWarps), threads = kWarps * 32;
    switch (kernel) {
    case 0: homework::unnamed<D><<<blocks, threads>>>(in, out, n); break;
    case 1: homework::unnamed<D, int, double><<<blocks, threads>>>(in, out, n, 1, 2.0); break;
    case 2: with_bool<D, true><<<blocks, threads>>>(in, out, n); break;
    case 3: with_bool<D, false><<<blocks, threads>>>(in, out, n); break;
    case 4: with_enum<D, Mode::plain><<<blocks, threads>>>(in, out, n); break;
    case 5: with_enum<D, Mode::causal><<<blocks, threads>>>(in, out, n); break;
    case 6: with_integers<D, 'a', ~0ull><<<blocks, threads>>>(in, out, n); break;
    case 7: with_pointer<D, float (*)[4]><<<blocks, threads>>>(in, out, n, nullptr); break;
    case 8: with_function<D, larger><<<blocks, threads>>>(in, out, n); break;
    case 9: with_operator<D><<<blocks, threads>>>(in, out, n, Plus()); break;
    case 10: with_operator<D><<<blocks, threads>>>(in, out, n, Untagged()); break;
    case 11: with_template<D, Pair><<<blocks, threads>>>(in, out, n); break;
    case 12: overloaded<D><<<blocks, threads>>>(in, out, n, 1); break;
    case 13: overloaded<D><<<blocks, threads>>>(in, out, n, 1.0f); break;
    case 14: with_operator<D><<<blocks, threads>>>(in, out, n, Long()); break;
    case 15: outer::inner::nested<D><<<blocks, threads>>>(in, out, n); break;
    }
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count);
    read_values(file, values.data(), values.size());
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    const unsigned blocks = unsigned((shape.n + kWarps - 1) / kWarps);
    for (int b = 0; b < shape.batches; ++b) {
        const float* const in = input + 3 * b * batch;
        float* const out = output + b * batch;
        const int kernel = b % (kKernels + 2);
        if (kernel == kKernels)
            (shape.d == 32 ? c_32 : c_64)<<<blocks, kWarps * 32>>>(in, out, shape.n);
        else if (kernel > kKernels)
            (shape.d == 32 ? alone_32 : alone_64)<<<blocks, kWarps * 32>>>(in, out, shape.n);
        else if (shape.d == 32)
            launch_kernel<32>(kernel, in, out, shape.n);
        else
            launch_kernel<64>(kernel, in, out, shape.n);
    }
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), count);
}
