// A picture in shades of grey, sixteen pixels a thread: three loads of 16 bytes, one store of 16. Rows follow each other
// without gaps, so the picture is one line of pixels. The last pixels, fewer than sixteen, are the first block's.

constexpr int PIXELS = 16;

__device__ static unsigned grey(unsigned r, unsigned g, unsigned b) { return (77 * r + 150 * g + 29 * b + 128) >> 8; }

// Four pixels from twelve bytes.
__device__ static unsigned four(unsigned a, unsigned b, unsigned c) {
    return grey(a & 255, a >> 8 & 255, a >> 16 & 255) | grey(a >> 24, b & 255, b >> 8 & 255) << 8 |
           grey(b >> 16 & 255, b >> 24, c & 255) << 16 | grey(c >> 8 & 255, c >> 16 & 255, c >> 24) << 24;
}

__global__ void grey_line(const unsigned char* p, unsigned char* g, int pixels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, groups = pixels / PIXELS;
    if (i < pixels - PIXELS * groups) {
        const unsigned char* rgb = p + 3 * (PIXELS * groups + i);
        g[PIXELS * groups + i] = grey(rgb[0], rgb[1], rgb[2]);
    }
    if (i >= groups) return;
    const auto* in = reinterpret_cast<const uint4*>(p) + 3 * i;
    const uint4 a = in[0], b = in[1], c = in[2];
    reinterpret_cast<uint4*>(g)[i] =
        make_uint4(four(a.x, a.y, a.z), four(a.w, b.x, b.y), four(b.z, b.w, c.x), four(c.y, c.z, c.w));
}

extern "C" void solve(const unsigned char* P, unsigned char* G, int height, int width) {
    const int pixels = height * width;
    grey_line<<<pixels / PIXELS / 128 + 1, 128>>>(P, G, pixels);
}
