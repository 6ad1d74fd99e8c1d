// A row begins every `width` bytes in place of 3 `width`: later rows are read from the wrong place.
// expect: wrong_answer on most: where it does not belong | only rows

__global__ void grey(const unsigned char* p, unsigned char* g, int height, int width) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const unsigned char* rgb = p + y * width + 3 * x;
    g[y * width + x] = (77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2] + 128) >> 8;
}

extern "C" void solve(const unsigned char* P, unsigned char* G, int height, int width) {
    grey<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(P, G, height, width);
}
