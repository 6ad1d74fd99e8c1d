// Warp functions of lanes that name different masks, or that come separately.
#include "conformance.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

constexpr int WARPS = 2, LANES = 32 * WARPS, RESULTS = 9;

// What each lane of a group of lanes (`group`, of one warp) sees, on the host.
struct Seen {
    unsigned ballot = 0, match = 0, sum = 0, or_ = 0, first = 0;
    int lowest = INT32_MAX;
    bool any = false, all = true, same = true;
};
static Seen seen(const std::vector<int> &v, int thread, unsigned group) {
    Seen s;
    int warp = thread & ~31, me = v[thread], leader = -1;
    for (int l = 0; l < 32; l++)
        if (group >> l & 1) {
            int x = v[warp + l];
            if (leader < 0) leader = l, s.first = (unsigned)x;
            s.ballot |= (unsigned)(x & 1) << l, s.match |= (unsigned)(x % 3 == me % 3) << l;
            s.any |= x % 5 == 0, s.all &= x % 5 != 1, s.same &= (x & 64) == (v[warp + leader] & 64);
            s.sum += (unsigned)x, s.or_ |= (unsigned)x, s.lowest = std::min(s.lowest, x);
        }
    return s;
}
__device__ void ask(unsigned mask, int v, unsigned *out, int lanes) {
    int i = threadIdx.x, equal;
    out[i] = __ballot_sync(mask, v & 1);
    out[lanes + i] = __any_sync(mask, v % 5 == 0) != 0;
    out[2 * lanes + i] = __all_sync(mask, v % 5 != 1) != 0;
    out[3 * lanes + i] = __match_any_sync(mask, v % 3);
    out[4 * lanes + i] = __match_all_sync(mask, v & 64, &equal) | (equal ? 0 : 0x80000000u);
    out[5 * lanes + i] = __reduce_add_sync(mask, (unsigned)v);
    out[6 * lanes + i] = (unsigned)__reduce_min_sync(mask, v);
    out[7 * lanes + i] = __reduce_or_sync(mask, (unsigned)v);
    out[8 * lanes + i] = (unsigned)__shfl_sync(mask, v, __ffs((int)mask) - 1);
}
template <class Group> static bool agree(const std::vector<unsigned> &out, const std::vector<int> &v, Group group) {
    int lanes = (int)v.size();
    return equal(out, [&](size_t k) {
        int i = (int)k % lanes;
        unsigned g = group(i);
        if (!g) return 0u;
        Seen s = seen(v, i, g);
        switch (k / lanes) {
        case 0: return s.ballot;
        case 1: return (unsigned)s.any;
        case 2: return (unsigned)s.all;
        case 3: return s.match;
        case 4: return s.same ? g : 0x80000000u;
        case 5: return s.sum;
        case 6: return (unsigned)s.lowest;
        case 7: return s.or_;
        default: return s.first;
        }
    });
}
static Array<int> &values(size_t seed) {
    static Array<int> v(LANES);
    for (int i = 0; i < LANES; i++) v.host[i] = (int)(noise(seed * 1000 + i) % 200) - (i % 7 == 0 ? 150 : 0);
    v.up();
    return v;
}

__global__ void by_mask(const unsigned *mask, const int *in, unsigned *out) {
    if (mask[threadIdx.x]) ask(mask[threadIdx.x], in[threadIdx.x], out, LANES);
}
static bool masks_agree(const std::vector<unsigned> &groups, size_t seed) {
    Array<unsigned> mask(LANES), out(RESULTS * LANES);
    mask.host = groups, mask.up();
    Array<int> &v = values(seed);
    by_mask<<<1, LANES>>>(mask.device, v.device, out.device);
    return finished() && agree(out.down(), v.host, [&](int i) { return groups[i]; });
}
TEST(warp_functions_of_aligned_groups) {
    for (int width = 1; width <= 32; width *= 2) {
        std::vector<unsigned> groups(LANES);
        for (int i = 0; i < LANES; i++) groups[i] = (width == 32 ? ~0u : (1u << width) - 1) << (i & 31) / width * width;
        if (!masks_agree(groups, (size_t)width)) return false;
    }
    return true;
}
TEST(warp_functions_of_groups_of_any_lanes) {
    for (unsigned seed = 0; seed < 12; seed++) {
        std::vector<unsigned> groups(LANES, 0);
        for (int i = 0; i < LANES; i++)
            for (int k = 0; k < 32; k++)
                if (noise(seed * 77 + (i & ~31) + k) % (seed + 1) == noise(seed * 77 + i) % (seed + 1)) groups[i] |= 1u << k;
        if (!masks_agree(groups, seed)) return false;
    }
    return true;
}
TEST(warp_functions_of_some_lanes_only) {
    std::vector<unsigned> groups(LANES, 0);
    for (int i = 0; i < LANES; i++)
        if ((i & 31) % 3) groups[i] = (i & 31) % 3 == 1 ? 0x92492492u : 0x24924924u;
    return masks_agree(groups, 5);
}

// Lanes of one group come to the same call at different times: each its own number of times round a loop before.
__global__ void late(const int *in, unsigned *out, int width) {
    int i = threadIdx.x, v = in[i], x = v;
    unsigned mask = (width == 32 ? ~0u : (1u << width) - 1) << (i & 31) / width * width;
    for (int k = 0; k < (i * 5 & 15); k++) x = x * 3 + k;
    if (x == 123456789) out[0] = 1;
    ask(mask, v, out, LANES);
}
TEST(lanes_that_come_late) {
    Array<int> &v = values(3);
    for (int width : {2, 8, 32}) {
        Array<unsigned> out(RESULTS * LANES);
        late<<<1, LANES>>>(v.device, out.device, width);
        if (!finished() || !agree(out.down(), v.host, [&](int i) { return (width == 32 ? ~0u : (1u << width) - 1) << (i & 31) / width * width; })) return false;
    }
    return true;
}
// Groups take their own way, and make a different number of calls.
__global__ void loops(const int *in, unsigned *out) {
    int i = threadIdx.x, lane = i & 31, v = in[i];
    unsigned mask = 0xfu << (lane & ~3), sum = 0;
    for (int k = 0; k < (lane >> 2) + 1; k++) sum = sum * 31 + __ballot_sync(mask, (v >> k) & 1) + __reduce_max_sync(mask, (unsigned)v + k);
    out[i] = sum;
}
TEST(groups_that_call_a_different_number_of_times) {
    Array<int> &v = values(8);
    Array<unsigned> out(LANES);
    loops<<<1, LANES>>>(v.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        unsigned sum = 0;
        for (int k = 0; k < (int)((i & 31) >> 2) + 1; k++) {
            unsigned ballot = 0, most = 0;
            for (size_t l = i & ~3u; l < (i & ~3u) + 4; l++) ballot |= (unsigned)(v.host[l] >> k & 1) << (l & 31), most = std::max(most, (unsigned)v.host[l] + k);
            sum = sum * 31 + ballot + most;
        }
        return sum;
    });
}
// The lanes of a mask meet though they call from two places.
__global__ void either_side(const int *in, unsigned *out) {
    int i = threadIdx.x, v = in[i];
    unsigned r;
    if (i % 3 == 0) {
        r = __ballot_sync(~0u, v & 1) + 7;
        r = r * 31 + (unsigned)__shfl_xor_sync(~0u, v, 1);
        out[i] = r * 31 + __reduce_add_sync(~0u, (unsigned)v);
    } else {
        r = __ballot_sync(~0u, v & 4) + 9;
        r = r * 33 + (unsigned)__shfl_xor_sync(~0u, v + 1, 1);
        out[i] = r * 33 + __reduce_add_sync(~0u, (unsigned)v * 3);
    }
}
TEST(lanes_that_call_from_both_sides_of_a_branch) {
    Array<int> &v = values(4);
    Array<unsigned> out(LANES);
    either_side<<<1, LANES>>>(v.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t i) {
        size_t warp = i & ~31u;
        unsigned ballot = 0, sum = 0, other = (unsigned)v.host[i ^ 1] + ((i ^ 1) % 3 != 0);
        for (size_t l = 0; l < 32; l++) {
            bool third = (warp + l) % 3 == 0;
            unsigned x = (unsigned)v.host[warp + l];
            ballot |= (unsigned)((third ? x & 1 : x & 4) != 0) << l, sum += third ? x : 3 * x;
        }
        return i % 3 == 0 ? ((ballot + 7) * 31 + other) * 31 + sum : ((ballot + 9) * 33 + other) * 33 + sum;
    });
}
// Both sides exchange through shared memory at a __syncwarp() of their own.
__global__ void exchange(int *out) {
    __shared__ int s[32];
    int i = threadIdx.x;
    if (i & 1) {
        s[i] = i * 3;
        __syncwarp();
        out[i] = s[i ^ 1];
    } else {
        s[i] = i * 5;
        __syncwarp();
        out[i] = s[i ^ 1] + 1;
    }
}
TEST(both_sides_of_a_branch_wait_in_their_own_syncwarp) {
    Array<int> out(32);
    exchange<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return i & 1 ? (int)(i ^ 1) * 5 : (int)(i ^ 1) * 3 + 1; });
}
// Lanes that have exited are not waited for.
__global__ void after_exit(const int *in, unsigned *out, unsigned gone) {
    int i = threadIdx.x, lane = i & 31;
    if (gone >> lane & 1) return;
    ask(0xffu << (lane & ~7), in[i], out, LANES);
}
TEST(lanes_that_have_exited_do_not_count) {
    Array<int> &v = values(6);
    for (unsigned gone : {0x00000001u, 0x80f00842u, 0x0000ff00u}) {
        Array<unsigned> out(RESULTS * LANES);
        after_exit<<<1, LANES>>>(v.device, out.device, gone);
        if (!finished()) return false;
        for (int i = 0; i < LANES; i++) // match.all of lanes of which some are gone gives their mask as it was named or without them
            if (out.down()[4 * LANES + i] & 0x80000000u ? 0 : out.host[4 * LANES + i]) out.host[4 * LANES + i] &= ~gone;
        for (int i = 0; i < LANES; i++) // the shuffle's source lane may be gone
            if (gone >> (i & 24) & 1 && !(gone >> (i & 31) & 1)) out.host[8 * LANES + i] = seen(v.host, i, 0xffu << (i & 24) & ~gone).first;
        if (!agree(out.host, v.host, [&](int i) { return gone >> (i & 31) & 1 ? 0 : 0xffu << (i & 24) & ~gone; })) return false;
    }
    return true;
}

template <int WIDTH> __global__ void tile(const int *in, int *out) {
    auto t = cg::tiled_partition<WIDTH>(cg::this_thread_block());
    int i = threadIdx.x, v = in[i];
    out[i] = (int)t.ballot(v & 1), out[LANES + i] = t.any(v % 5 == 0), out[2 * LANES + i] = t.all(v % 5 != 1);
    out[3 * LANES + i] = (int)t.match_any(v % 3);
    out[4 * LANES + i] = cg::reduce(t, v, cg::plus<int>()), out[5 * LANES + i] = cg::reduce(t, v, cg::less<int>());
    out[6 * LANES + i] = t.shfl(v, 0), out[7 * LANES + i] = cg::inclusive_scan(t, v);
    out[8 * LANES + i] = (int)(t.thread_rank() + 100 * t.meta_group_rank());
}
template <int WIDTH> static bool tile_agrees() {
    Array<int> &v = values(WIDTH + 50);
    Array<int> out(RESULTS * LANES);
    tile<WIDTH><<<1, LANES>>>(v.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t k) {
        int i = (int)k % LANES, start = i / WIDTH * WIDTH, shift = start & 31;
        unsigned g = (WIDTH == 32 ? ~0u : (1u << WIDTH % 32) - 1) << shift;
        Seen s = seen(v.host, i, g);
        int scan = 0;
        for (int j = start; j <= i; j++) scan += v.host[j];
        switch (k / LANES) {
        case 0: return (int)(s.ballot >> shift);
        case 1: return (int)s.any;
        case 2: return (int)s.all;
        case 3: return (int)(s.match >> shift);
        case 4: return (int)s.sum;
        case 5: return s.lowest;
        case 6: return (int)s.first;
        case 7: return scan;
        default: return i - start + 100 * (i / WIDTH);
        }
    });
}
TEST(tiles_of_1_thread) { return tile_agrees<1>(); }
TEST(tiles_of_2_threads) { return tile_agrees<2>(); }
TEST(tiles_of_4_threads) { return tile_agrees<4>(); }
TEST(tiles_of_8_threads) { return tile_agrees<8>(); }
TEST(tiles_of_16_threads) { return tile_agrees<16>(); }
TEST(tiles_of_32_threads) { return tile_agrees<32>(); }

__global__ void partitions(const int *in, int *out) {
    int i = threadIdx.x, v = in[i];
    if (v % 4 == 0) {
        auto active = cg::coalesced_threads();
        out[i] = cg::reduce(active, v, cg::plus<int>()), out[LANES + i] = (int)active.ballot(v & 8);
    }
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto labeled = cg::labeled_partition(warp, (v & 255) % 5);
    out[2 * LANES + i] = cg::reduce(labeled, v, cg::plus<int>()), out[3 * LANES + i] = (int)labeled.size();
    auto binary = cg::binary_partition(warp, (v & 3) == 1);
    out[4 * LANES + i] = cg::reduce(binary, v, cg::greater<int>()), out[5 * LANES + i] = (int)binary.thread_rank();
    if ((v & 3) == 1) out[6 * LANES + i] = (int)binary.shfl(v, 0);
    else out[6 * LANES + i] = binary.any(v > 40);
}
TEST(coalesced_labeled_and_binary_partitions) {
    Array<int> &v = values(77);
    Array<int> out(7 * LANES);
    partitions<<<1, LANES>>>(v.device, out.device);
    if (!finished()) return false;
    return equal(out.down(), [&](size_t k) {
        int i = (int)k % LANES, warp = i & ~31, me = v.host[i], part = (int)k / LANES;
        int sum = 0, count = 0, most = INT32_MIN, rank = 0, first = 0, any = 0;
        unsigned ballot = 0;
        bool none = true;
        for (int l = warp; l < warp + 32; l++) {
            int x = v.host[l];
            if (part < 2 ? x % 4 != 0 : part < 4 ? (x & 255) % 5 != (me & 255) % 5 : ((x & 3) == 1) != ((me & 3) == 1)) continue;
            if (none) first = x, none = false;
            ballot |= (unsigned)((x & 8) != 0) << count;
            sum += x, count++, most = std::max(most, x), rank += l < i, any |= x > 40;
        }
        switch (part) {
        case 0: return me % 4 ? 0 : sum;
        case 1: return me % 4 ? 0 : (int)ballot;
        case 2: return sum;
        case 3: return count;
        case 4: return most;
        case 5: return rank;
        default: return (me & 3) == 1 ? first : any;
        }
    });
}
