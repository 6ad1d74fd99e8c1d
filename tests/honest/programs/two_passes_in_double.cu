// Scores are kept in device memory and everything is computed in double precision, batch by batch.
#include "honest.h"

__global__ void scores_of(const float* q, const float* k, double* scores, int n, int d) {
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    const size_t row = at / n, key = at % n;
    double s = 0.0;
    for (int x = 0; x < d; ++x) s += double(q[row * d + x]) * k[key * d + x];
    scores[at] = exp(s / sqrt(double(d)));
}

__global__ void weighted(const double* scores, const float* v, float* o, int n, int d) {
    const int row = blockIdx.x, x = threadIdx.x;
    double total = 0.0, sum = 0.0;
    for (int key = 0; key < n; ++key) {
        total += scores[size_t(row) * n + key];
        sum += scores[size_t(row) * n + key] * v[size_t(key) * d + x];
    }
    o[size_t(row) * d + x] = float(sum / total);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::FILE* const file = std::fopen(argv[1], "rb");
    const Shape shape = read_shape(file);
    [[maybe_unused]] const size_t count = shape.count(), batch = size_t(shape.n) * shape.d;
    std::vector<float> values(3 * count);
    read_values(file, values.data(), 3 * count);
    float *input, *output;
    must(cudaMalloc(&input, 3 * count * 4));
    must(cudaMalloc(&output, count * 4));
    must(cudaMemcpy(input, values.data(), 3 * count * 4, cudaMemcpyHostToDevice));
    double* scores;
    must(cudaMalloc(&scores, size_t(shape.n) * shape.n * 8));
    for (int i = 0; i < shape.batches; ++i) {
        const float* const q = input + 3 * i * batch;
        scores_of<<<unsigned(size_t(shape.n) * shape.n / 128), 128>>>(q, q + batch, scores, shape.n, shape.d);
        weighted<<<shape.n, shape.d>>>(scores, q + 2 * batch, output + i * batch, shape.n, shape.d);
    }
    must(cudaGetLastError());
    must(cudaMemcpy(values.data(), output, count * 4, cudaMemcpyDeviceToHost));
    write_values(argv[2], values.data(), count);
}
