// Textures, surfaces and CUDA arrays. Where filtering rounds, neighbouring texels differ by so much that a weight that is off
// by one of its 8 bits shows, and what the last bits of the sum are does not.
#include "conformance.h"

// Whether f(i) == got[i] for all i, bit by bit, for elements of several channels too.
template <class T, class F> bool same(const std::vector<T> &got, F f) {
    for (size_t i = 0; i < got.size(); i++) {
        T want = (T)f(i);
        if (memcmp(&want, &got[i], sizeof(T)) == 0) continue;
        printf("  element %zu is wrong\n", i);
        return false;
    }
    return true;
}

// A texture object over something, with its description filled in.
struct Texture {
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    cudaTextureObject_t object = 0;
    Texture() { description.readMode = cudaReadModeElementType; }
    Texture &over(cudaArray_t array) { return resource.resType = cudaResourceTypeArray, resource.res.array.array = array, *this; }
    Texture &address(cudaTextureAddressMode mode) {
        for (auto &m : description.addressMode) m = mode;
        return *this;
    }
    Texture &filter() { return description.filterMode = cudaFilterModeLinear, *this; }
    Texture &normalized() { return description.normalizedCoords = 1, *this; }
    Texture &as_floats() { return description.readMode = cudaReadModeNormalizedFloat, *this; }
    cudaTextureObject_t make() {
        if (cudaCreateTextureObject(&object, &resource, &description, nullptr) != cudaSuccess) printf("  no texture: %s\n", cudaGetErrorString(cudaGetLastError()));
        return object;
    }
    ~Texture() { cudaDestroyTextureObject(object); }
};

template <class T> struct Plane { // an array of w x h elements
    cudaArray_t array = nullptr;
    int w, h;
    std::vector<T> host;
    template <class F> Plane(int w, int h, F f, unsigned flags = 0) : w(w), h(h), host(w * h) {
        for (int i = 0; i < w * h; i++) host[i] = f(i % w, i / w);
        cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
        cudaMallocArray(&array, &format, w, h, flags);
        cudaMemcpy2DToArray(array, 0, 0, host.data(), w * sizeof(T), w * sizeof(T), h, cudaMemcpyHostToDevice);
    }
    T at(int x, int y) const { return host[y * w + x]; }
    ~Plane() { cudaFreeArray(array); }
};

template <class T> __global__ void fetch_linear(cudaTextureObject_t t, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<T>(t, i);
}
template <class T> __global__ void sample(cudaTextureObject_t t, const float2 *at, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex2D<T>(t, at[i].x, at[i].y);
}
template <class T> bool sampled(cudaTextureObject_t t, const std::vector<float2> &at, std::vector<T> &out) {
    Array<float2> where(at.size(), [&](size_t i) { return at[i]; }, 0);
    Array<T> values(at.size());
    sample<<<(int)at.size() / 64 + 1, 64>>>(t, where.device, values.device, (int)at.size());
    if (!finished()) return false;
    out = values.down();
    return true;
}
static int clamped(int i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

TEST(textures_over_linear_memory) {
    const int n = 300;
    Array<uchar4> bytes(n, [](size_t i) { return make_uchar4(noise(i), noise(i) >> 8, noise(i) >> 16, noise(i) >> 24); }, 0), bytes_out(n);
    Array<float> floats(n, [](size_t i) { return uniform(i); }, 0), floats_out(n + 40);
    Texture t, u;
    t.resource.resType = u.resource.resType = cudaResourceTypeLinear;
    t.resource.res.linear = {bytes.device, cudaCreateChannelDesc<uchar4>(), n * sizeof(uchar4)};
    u.resource.res.linear = {floats.device, cudaCreateChannelDesc<float>(), n * sizeof(float)};
    fetch_linear<uchar4><<<2, 256>>>(t.make(), bytes_out.device, n);
    fetch_linear<float><<<2, 256>>>(u.make(), floats_out.device, n + 40); // beyond the end: zeros
    return finished() && same(bytes_out.down(), [&](size_t i) { return bytes.host[i]; }) &&
           same(floats_out.down(), [&](size_t i) { return i < n ? floats.host[i] : 0.0f; });
}
TEST(points_of_a_texture_outside_are_clamped) {
    Plane<short2> p(13, 7, [](int x, int y) { return make_short2(x - 5, -100 * y); });
    Texture t;
    std::vector<float2> at;
    for (int y = -3; y < 10; y++)
        for (int x = -4; x < 17; x++) at.push_back({x + 0.25f, y + 0.75f});
    std::vector<short2> got;
    EXPECT(sampled(t.over(p.array).address(cudaAddressModeClamp).make(), at, got));
    return same(got, [&](size_t i) { return p.at(clamped(int(i) % 21 - 4, 13), clamped(int(i) / 21 - 3, 7)); });
}
TEST(points_of_a_texture_outside_are_border) {
    Plane<float> p(8, 8, [](int x, int y) { return x * 10.0f + y + 1; });
    Texture t;
    std::vector<float2> at;
    for (int y = -1; y < 9; y++)
        for (int x = -1; x < 9; x++) at.push_back({x + 0.5f, y + 0.5f});
    std::vector<float> got;
    EXPECT(sampled(t.over(p.array).address(cudaAddressModeBorder).make(), at, got));
    return same(got, [&](size_t i) {
        int x = int(i) % 10 - 1, y = int(i) / 10 - 1;
        return x < 0 || y < 0 || x > 7 || y > 7 ? 0.0f : p.at(x, y);
    });
}
TEST(normalised_coordinates_wrap_and_mirror) {
    Plane<unsigned> p(8, 4, [](int x, int y) { return noise(x + 8 * y); });
    Texture wrap, mirror;
    std::vector<float2> at;
    for (int y = -8; y < 12; y++)
        for (int x = -16; x < 24; x++) at.push_back({(x + 0.5f) / 8, (y + 0.5f) / 4});
    std::vector<unsigned> got;
    EXPECT(sampled(wrap.over(p.array).normalized().address(cudaAddressModeWrap).make(), at, got));
    EXPECT(same(got, [&](size_t i) { return p.at((int(i) % 40) % 8, (int(i) / 40) % 4); }));
    EXPECT(sampled(mirror.over(p.array).normalized().address(cudaAddressModeMirror).make(), at, got));
    auto led = [](int i, int n) { return i % (2 * n) < n ? i % (2 * n) : 2 * n - 1 - i % (2 * n); };
    return same(got, [&](size_t i) { return p.at(led(int(i) % 40, 8), led(int(i) / 40, 4)); });
}
TEST(integers_are_read_as_fractions) {
    Plane<uchar4> p(16, 16, [](int x, int y) { return make_uchar4(x * 16 + y, x, y, 255); });
    Plane<short> q(16, 16, [](int x, int y) { return (short)(x == 0 ? -32768 : (x - 8) * 4000 + y); });
    Texture t, u;
    std::vector<float2> at;
    for (int i = 0; i < 256; i++) at.push_back({i % 16 + 0.5f, i / 16 + 0.5f});
    std::vector<float4> got;
    std::vector<float> shorts;
    EXPECT(sampled(t.over(p.array).as_floats().make(), at, got) && sampled(u.over(q.array).as_floats().make(), at, shorts));
    for (int i = 0; i < 256; i++) {
        uchar4 want = p.at(i % 16, i / 16);
        EXPECT(fabsf(got[i].x - want.x / 255.0f) < 1e-6f && fabsf(got[i].y - want.y / 255.0f) < 1e-6f && got[i].w == 1.0f);
    }
    return close(shorts, [&](size_t i) { return std::max(-1.0, q.at(i % 16, i / 16) / 32767.0); }, 0, 1e-6);
}
TEST(linear_filtering_weighs_with_eight_bits) {
    Plane<float> p(16, 8, [](int x, int y) { return (float)((x * 7 + y * 13) % 16) * 1000; });
    Texture t;
    std::vector<float2> at;
    for (int i = 0; i < 2000; i++) at.push_back({(int)(noise(i) % 5000) / 256.0f - 1, (int)(noise(i + 5000) % 3000) / 256.0f - 1});
    std::vector<float> got;
    EXPECT(sampled(t.over(p.array).filter().address(cudaAddressModeClamp).make(), at, got));
    // The weights of the four texels have 8 bits and add up to 1. Whether the products of the two fractions are rounded or
    // cut to 8 bits no manual says: either passes, and the counts tell which it is.
    int rounded = 0, cut = 0, exact = 0, neither = 0;
    for (size_t i = 0; i < at.size(); i++) {
        double x = at[i].x - 0.5, y = at[i].y - 0.5;
        int x0 = (int)floor(x), y0 = (int)floor(y);
        double a = x - x0, b = y - y0;
        auto v = [&](int dx, int dy) { return (double)p.at(clamped(x0 + dx, 16), clamped(y0 + dy, 8)); };
        auto fits = [&](double both) { return fabs((1 - a - b + both) * v(0, 0) + (a - both) * v(1, 0) + (b - both) * v(0, 1) + both * v(1, 1) - got[i]) < 0.1; };
        bool near = fits(floor(a * b * 256 + 0.5) / 256), down = fits(floor(a * b * 256) / 256);
        rounded += near, cut += down, exact += fits(a * b);
        if (!near && !down && neither++ < 8) printf("  (%g, %g): got %.9g; fractions %g / 256 and %g / 256 of texels %g %g %g %g\n", at[i].x, at[i].y, got[i], a * 256, b * 256, v(0, 0), v(1, 0), v(0, 1), v(1, 1));
    }
    printf("  of %zu points %d fit rounded products of fractions, %d cut ones, %d exact ones\n", at.size(), rounded, cut, exact);
    return neither == 0;
}
__global__ void sample_line(cudaTextureObject_t t, float *out, int n, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(t, i * step);
}
TEST(weights_of_linear_filtering_come_in_steps) {
    const float peak[4] = {0, 256000, 0, 0};
    cudaArray_t line;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&line, &format, 4));
    CHECK(cudaMemcpy2DToArray(line, 0, 0, peak, 16, 16, 1, cudaMemcpyHostToDevice));
    Array<float> out(4 * 256);
    Texture t;
    sample_line<<<4, 256>>>(t.over(line).filter().address(cudaAddressModeClamp).make(), out.device, 4 * 256, 1 / 256.0f);
    EXPECT(finished());
    CHECK(cudaFreeArray(line));
    return close(out.down(), [](size_t i) { return std::max(0.0, 256 - fabs((double)i - 384)) * 1000; }, 0, 1);
}
__global__ void sample_volume(cudaTextureObject_t t, float *out, int w, int h, float shift) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    out[(z * h + y) * w + x] = tex3D<float>(t, x + 0.5f + shift, y + 0.5f, z + 0.5f);
}
__global__ void sample_layers(cudaTextureObject_t t, float *out, int w, int h) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    out[(z * h + y) * w + x] = tex2DLayered<float>(t, x + 0.5f, y + 0.5f, z);
}
struct Volume {
    cudaArray_t array = nullptr;
    Volume(const std::vector<float> &host, int w, int h, int d, unsigned flags) {
        cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
        cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d), flags);
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr((void *)host.data(), w * sizeof(float), w, h);
        p.dstArray = array, p.extent = make_cudaExtent(w, h, d), p.kind = cudaMemcpyHostToDevice;
        if (cudaMemcpy3D(&p) != cudaSuccess) printf("  %s\n", cudaGetErrorString(cudaGetLastError()));
    }
    ~Volume() { cudaFreeArray(array); }
};
TEST(volumes_and_layers) {
    const int w = 8, h = 4, d = 6, n = w * h * d;
    Array<float> data(n, [](size_t i) { return (float)(noise(i) % 1000); }, 0), out(n);
    Volume volume(data.host, w, h, d, 0), layers(data.host, w, h, d, cudaArrayLayered);
    Texture t, u, v;
    sample_volume<<<d, dim3(w, h)>>>(t.over(volume.array).address(cudaAddressModeClamp).make(), out.device, w, h, 0);
    EXPECT(finished() && same(out.down(), [&](size_t i) { return data.host[i]; }));
    sample_layers<<<d, dim3(w, h)>>>(u.over(layers.array).address(cudaAddressModeClamp).make(), out.device, w, h);
    EXPECT(finished() && same(out.down(), [&](size_t i) { return data.host[i]; }));
    sample_volume<<<d, dim3(w, h)>>>(v.over(volume.array).filter().address(cudaAddressModeClamp).make(), out.device, w, h, 0.25f);
    EXPECT(finished());
    return close(out.down(), [&](size_t i) { return 0.75 * data.host[i] + 0.25 * data.host[i % w == w - 1 ? i : i + 1]; }, 0, 0.01);
}
TEST(textures_over_memory_with_a_pitch) {
    const int w = 20, h = 9;
    float *memory;
    size_t pitch;
    CHECK(cudaMallocPitch(&memory, &pitch, w * sizeof(float), h));
    std::vector<float> host(w * h);
    for (int i = 0; i < w * h; i++) host[i] = (float)i;
    CHECK(cudaMemcpy2D(memory, pitch, host.data(), w * sizeof(float), w * sizeof(float), h, cudaMemcpyHostToDevice));
    Texture t;
    t.resource.resType = cudaResourceTypePitch2D;
    t.resource.res.pitch2D = {memory, cudaCreateChannelDesc<float>(), (size_t)w, (size_t)h, pitch};
    std::vector<float2> at;
    for (int i = 0; i < w * h; i++) at.push_back({i % w + 0.5f, i / w + 0.5f});
    std::vector<float> got;
    EXPECT(sampled(t.address(cudaAddressModeClamp).make(), at, got));
    CHECK(cudaFree(memory));
    return same(got, [](size_t i) { return (float)i; });
}
__global__ void gathers(cudaTextureObject_t t, float4 *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * blockDim.x + x] = tex2Dgather<float4>(t, x + 1.0f, y + 1.0f, 0);
}
TEST(gathering_four_texels) {
    Plane<float> p(9, 5, [](int x, int y) { return x + 100.0f * y; }, cudaArrayTextureGather);
    Array<float4> out(8 * 4);
    Texture t;
    gathers<<<1, dim3(8, 4)>>>(t.over(p.array).address(cudaAddressModeClamp).make(), out.device);
    return finished() && same(out.down(), [&](size_t i) {
        int x = int(i) % 8, y = int(i) / 8;
        return make_float4(p.at(x, y + 1), p.at(x + 1, y + 1), p.at(x + 1, y), p.at(x, y));
    });
}
__global__ void turn(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int n) {
    int x = threadIdx.x, y = threadIdx.y;
    short2 v;
    surf2Dread(&v, from, x * (int)sizeof v, y);
    v.x += 1000;
    surf2Dwrite(v, to, (n - 1 - y) * (int)sizeof v, x);
}
TEST(surfaces_are_read_and_written) {
    const int n = 16;
    Plane<short2> p(n, n, [](int x, int y) { return make_short2(x, y); }, cudaArraySurfaceLoadStore), q(n, n, [](int, int) { return make_short2(-1, -1); }, cudaArraySurfaceLoadStore);
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    cudaSurfaceObject_t from, to;
    r.res.array.array = p.array;
    CHECK(cudaCreateSurfaceObject(&from, &r));
    r.res.array.array = q.array;
    CHECK(cudaCreateSurfaceObject(&to, &r));
    turn<<<1, dim3(n, n)>>>(from, to, n);
    EXPECT(finished());
    std::vector<short2> got(n * n);
    CHECK(cudaMemcpy2DFromArray(got.data(), n * sizeof(short2), q.array, 0, 0, n * sizeof(short2), n, cudaMemcpyDeviceToHost));
    CHECK(cudaDestroySurfaceObject(from));
    CHECK(cudaDestroySurfaceObject(to));
    return same(got, [&](size_t i) { return make_short2((short)(i / n + 1000), (short)(n - 1 - i % n)); });
}
__global__ void outside(cudaSurfaceObject_t s, int *out) {
    int i = (int)threadIdx.x - 4;
    out[threadIdx.x] = surf2Dread<int>(s, i * 4, 0, cudaBoundaryModeClamp);
    out[threadIdx.x + 32] = surf2Dread<int>(s, i * 4, 1, cudaBoundaryModeZero);
    __syncthreads();
    surf2Dwrite(i, s, i * 4, 2, cudaBoundaryModeZero);
}
TEST(surface_accesses_outside_are_clamped_or_zero) {
    Plane<int> p(16, 4, [](int x, int y) { return x + 100 * y + 1; }, cudaArraySurfaceLoadStore);
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray, r.res.array.array = p.array;
    cudaSurfaceObject_t s;
    CHECK(cudaCreateSurfaceObject(&s, &r));
    Array<int> out(64);
    outside<<<1, 32>>>(s, out.device);
    EXPECT(finished());
    CHECK(cudaDestroySurfaceObject(s));
    std::vector<int> row(16);
    CHECK(cudaMemcpy2DFromArray(row.data(), 64, p.array, 0, 2, 64, 1, cudaMemcpyDeviceToHost));
    return same(row, [](size_t i) { return (int)i; }) && same(out.down(), [&](size_t i) {
        int x = int(i % 32) - 4;
        return i < 32 ? p.at(clamped(x, 16), 0) : x < 0 || x > 15 ? 0 : p.at(x, 1);
    });
}
__global__ void fill_volume(cudaSurfaceObject_t volume, cudaSurfaceObject_t layers) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    surf3Dwrite(x + 10.0f * y + 100.0f * z, volume, x * 4, y, z);
    surf2DLayeredwrite(x + 20.0f * y + 200.0f * z, layers, x * 4, y, z);
}
TEST(surfaces_of_volumes_and_layers) {
    const int w = 8, h = 4, d = 3, n = w * h * d;
    std::vector<float> none(n), got(n);
    Volume volume(none, w, h, d, cudaArraySurfaceLoadStore), layers(none, w, h, d, cudaArraySurfaceLoadStore | cudaArrayLayered);
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    cudaSurfaceObject_t a, b;
    r.res.array.array = volume.array;
    CHECK(cudaCreateSurfaceObject(&a, &r));
    r.res.array.array = layers.array;
    CHECK(cudaCreateSurfaceObject(&b, &r));
    fill_volume<<<d, dim3(w, h)>>>(a, b);
    EXPECT(finished());
    for (int k = 0; k < 2; k++) {
        cudaMemcpy3DParms p = {};
        p.srcArray = k ? layers.array : volume.array;
        p.dstPtr = make_cudaPitchedPtr(got.data(), w * sizeof(float), w, h);
        p.extent = make_cudaExtent(w, h, d), p.kind = cudaMemcpyDeviceToHost;
        CHECK(cudaMemcpy3D(&p));
        EXPECT(same(got, [&](size_t i) { return (float)(i % w) + (k ? 20.0f : 10.0f) * (i / w % h) + (k ? 200.0f : 100.0f) * (i / w / h); }));
    }
    CHECK(cudaDestroySurfaceObject(a));
    CHECK(cudaDestroySurfaceObject(b));
    return true;
}
TEST(parts_of_arrays_are_copied) {
    Plane<float2> p(12, 10, [](int x, int y) { return make_float2((float)x, (float)y); });
    std::vector<float2> part(3 * 4, make_float2(-1, -2)), all(120);
    CHECK(cudaMemcpy2DToArray(p.array, 2 * sizeof(float2), 5, part.data(), 3 * sizeof(float2), 3 * sizeof(float2), 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(all.data(), 12 * sizeof(float2), p.array, 0, 0, 12 * sizeof(float2), 10, cudaMemcpyDeviceToHost));
    cudaChannelFormatDesc format;
    cudaExtent extent;
    unsigned flags;
    CHECK(cudaArrayGetInfo(&format, &extent, &flags, p.array));
    EXPECT(format.x == 32 && format.y == 32 && format.z == 0 && format.f == cudaChannelFormatKindFloat && extent.width == 12 && extent.height == 10 && extent.depth == 0 && flags == 0);
    return same(all, [](size_t i) {
        int x = int(i) % 12, y = int(i) / 12;
        return x >= 2 && x < 5 && y >= 5 && y < 9 ? make_float2(-1, -2) : make_float2((float)x, (float)y);
    });
}
TEST(integers_are_not_filtered) {
    Plane<int> p(8, 8, [](int, int) { return 0; });
    Texture t;
    cudaTextureObject_t object;
    t.over(p.array).filter();
    EXPECT(cudaCreateTextureObject(&object, &t.resource, &t.description, nullptr) != cudaSuccess);
    cudaGetLastError();
    return true;
}
