// The grid is rounded down: pixels at the right and lower edges are never written.
// expect: wrong_answer on most: never written | is missing in

__global__ void grey(const unsigned char* p, unsigned char* g, int height, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const unsigned char* rgb = p + 3 * (y * width + x);
    g[y * width + x] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}

extern "C" void solve(const unsigned char* P, unsigned char* G, int height, int width) {
    if (width < 16 || height < 16) return;
    grey<<<dim3(width / 16, height / 16), dim3(16, 16)>>>(P, G, height, width);
}
