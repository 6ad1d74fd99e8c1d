// The sum is kept in a byte, which overflows.
// expect: wrong_answer on most: is missing in G

__global__ void grey(const unsigned char* p, unsigned char* g, int height, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const unsigned char* rgb = p + 3 * (y * width + x);
    const unsigned char sum = 77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128;
    g[y * width + x] = sum >> 8;
}

extern "C" void solve(const unsigned char* P, unsigned char* G, int height, int width) {
    grey<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(P, G, height, width);
}
