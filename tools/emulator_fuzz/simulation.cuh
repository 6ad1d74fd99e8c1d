// Warps and blocks on the host: each thread's registers x[0..3], which threads are on, its group's label, and what the threads of a warp or
// block do together. The device's side of each operation has the same name and takes a lane's own values.
#pragma once
#include "operations.cuh"

// The number of the k-th member of a mask, counted round and round.
OP u32 pick(u32 members, u32 k) {
    u32 n = BOTH(u32(__popc(members)), u32(__builtin_popcount(members)));
    for (k %= n; k != 0; k--) members &= members - 1;
    return BOTH(u32(__ffs(s32(members)) - 1), u32(__builtin_ctz(members)));
}

struct Block {
    u32 threads, number;
    std::vector<u32> x[4];
    std::vector<char> on;
    std::vector<u32> label, shared;
    Block(u32 n, u32 block) : threads(n), number(block), on(n, 1), label(n), shared(2 * n + 8) {
        for (auto &r : x) r.assign(n, 0);
    }
    template <class F> void each(F f) {
        for (u32 t = 0; t < threads; t++)
            if (on[t]) f(t, x[0][t], x[1][t], x[2][t], x[3][t]);
    }
    // x[to] of each member of each group of a warp becomes f(members, lane, values of all lanes).
    template <class F> void together(int to, int from, F f) {
        for (u32 first = 0; first < threads; first += 32) {
            const u32 lanes = threads - first < 32 ? threads - first : 32;
            u32 values[32] = {}, results[32] = {};
            for (u32 l = 0; l < lanes; l++) values[l] = x[from][first + l];
            for (u32 l = 0; l < lanes; l++)
                if (on[first + l]) results[l] = f(group(first, l), l, values);
            for (u32 l = 0; l < lanes; l++)
                if (on[first + l]) x[to][first + l] = results[l];
        }
    }
    u32 group(u32 first, u32 lane) const {
        u32 members = 0;
        for (u32 l = 0; l < 32 && first + l < threads; l++)
            if (on[first + l] && label[first + l] == label[first + lane]) members |= 1u << l;
        return members;
    }
    // Groups become those with the same key: f of a thread. A label is the lane of a group's first member.
    template <class F> void divide(F f) {
        std::vector<u32> key(threads), before = label;
        each([&](u32 t, u32 &a, u32 &b, u32 &c, u32 &d) { key[t] = f(t, a, b, c, d); });
        for (u32 t = 0; t < threads; t++)
            for (u32 s = t & ~31u; s <= t; s++)
                if (on[s] && before[s] == before[t] && key[s] == key[t]) {
                    label[t] = s & 31;
                    break;
                }
    }
    template <class F> std::vector<char> where(F f) {
        std::vector<char> r(threads, 0);
        each([&](u32 t, u32 &a, u32 &b, u32 &c, u32 &d) { r[t] = f(t, a, b, c, d); });
        return r;
    }
};
inline std::vector<char> both_of(const std::vector<char> &a, const std::vector<char> &b, bool negated) {
    std::vector<char> r(a);
    for (size_t i = 0; i < r.size(); i++) r[i] = a[i] && bool(b[i]) != negated;
    return r;
}
inline bool nobody(const std::vector<char> &a) {
    for (char c : a)
        if (c) return false;
    return true;
}

// COLLECTIVE(name, device, host): `m` are the members, `v` the lane's value (on the host all lanes' values), `k` a number.
#define COLLECTIVE(name, device_result, host_result)                                                              \
    __device__ inline u32 name(u32 m, u32 lane, u32 v, u32 k) { return device_result; }                                   \
    static u32 host_##name(u32 m, u32 lane, const u32 *v, u32 k) { return host_result; }
template <class F> u32 members_where(u32 m, F f) {
    u32 r = 0;
    for (u32 l = 0; l < 32; l++)
        if ((m >> l & 1) && f(l)) r |= 1u << l;
    return r;
}
template <class F> u32 folded(u32 m, const u32 *v, F f) {
    u32 first = __builtin_ctz(m), r = v[first];
    for (u32 l = first + 1; l < 32; l++)
        if (m >> l & 1) r = f(r, v[l]);
    return r;
}
inline f32 as_float(u32 x) { return f32(s32(x >> 8)) / 16; }
__device__ inline u32 all_same(u32 m, u32 v) { int p; u32 r = __match_all_sync(m, v & 1, &p); return r ^ u32(p) * 5; }
__device__ inline u32 wide_shuffle(u32 m, u32 v, u32 s) { u64 w = __shfl_sync(m, u64(v) << 32 | ~v, s); return u32(w) ^ u32(w >> 32) * 3; }
__device__ inline u32 float_shuffle(u32 m, u32 v, u32 s) { return word(__shfl_sync(m, f32(s32(v >> 8)) / 16, s)); }
__device__ inline u32 double_shuffle(u32 m, u32 v, u32 s) { return u32(word(__shfl_sync(m, f64(v), s)) >> 20); }

COLLECTIVE(shuffle, __shfl_sync(m, v, pick(m, v + k)), v[pick(m, v[lane] + k)])
COLLECTIVE(shuffle_same, __shfl_sync(m, v, pick(m, k)), v[pick(m, k)])
COLLECTIVE(shuffle_wide, wide_shuffle(m, v, pick(m, lane * 5 + k)), (v[pick(m, lane * 5 + k)] * 3) ^ ~v[pick(m, lane * 5 + k)])
COLLECTIVE(shuffle_float, float_shuffle(m, v, pick(m, lane * 3 + k)), word(as_float(v[pick(m, lane * 3 + k)])))
COLLECTIVE(shuffle_double, double_shuffle(m, v, pick(m, lane + k)), u32(word(f64(v[pick(m, lane + k)])) >> 20))
COLLECTIVE(ballot, __ballot_sync(m, v >> (k & 31) & 1), members_where(m, [=](u32 l) { return v[l] >> (k & 31) & 1; }))
COLLECTIVE(any_of, u32(__any_sync(m, (v & 7) == (k & 7))), members_where(m, [=](u32 l) { return (v[l] & 7) == (k & 7); }) != 0)
COLLECTIVE(all_of, u32(__all_sync(m, (v & 7) != (k & 7))), members_where(m, [=](u32 l) { return (v[l] & 7) == (k & 7); }) == 0)
COLLECTIVE(match_any, __match_any_sync(m, v & 3), members_where(m, [=](u32 l) { return (v[l] & 3) == (v[lane] & 3); }))
COLLECTIVE(match_any_wide, __match_any_sync(m, u64(v & 5) << 33), members_where(m, [=](u32 l) { return (v[l] & 5) == (v[lane] & 5); }))
COLLECTIVE(match_all, all_same(m, v), (members_where(m, [=](u32 l) { return (v[l] & 1) == (v[lane] & 1); }) == m ? m ^ 5 : 0))
COLLECTIVE(reduce_add, __reduce_add_sync(m, v), folded(m, v, [](u32 a, u32 b) { return a + b; }))
COLLECTIVE(reduce_min, __reduce_min_sync(m, v), folded(m, v, [](u32 a, u32 b) { return a < b ? a : b; }))
COLLECTIVE(reduce_max, u32(__reduce_max_sync(m, s32(v))), folded(m, v, [](u32 a, u32 b) { return s32(a) > s32(b) ? a : b; }))
COLLECTIVE(reduce_and, __reduce_and_sync(m, v | k), folded(m, v, [](u32 a, u32 b) { return a & b; }) | k)
COLLECTIVE(reduce_or, __reduce_or_sync(m, v & k), folded(m, v, [](u32 a, u32 b) { return a | b; }) & k)
COLLECTIVE(reduce_xor, __reduce_xor_sync(m, v), folded(m, v, [](u32 a, u32 b) { return a ^ b; }))
// In whole warps only: all lanes take part.
COLLECTIVE(whole_xor, __shfl_xor_sync(m, v, k & 31), v[lane ^ (k & 31)])
COLLECTIVE(whole_up, __shfl_up_sync(m, v, k & 31), v[lane >= (k & 31) ? lane - (k & 31) : lane])
COLLECTIVE(whole_down, __shfl_down_sync(m, v, k & 31, 8), v[(lane & 7) + (k & 31) < 8 ? lane + (k & 31) : lane])
COLLECTIVE(whole_index, __shfl_sync(m, v, v, 16), v[(lane & 16) + (v[lane] & 15)])
COLLECTIVE(whole_xor8, __shfl_xor_sync(m, v, k & 15, 8), v[(lane ^ (k & 15)) < (lane & ~7u) + 8 ? lane ^ (k & 15) : lane])
