// Groups of a warp's lanes: tiles of cooperative groups, and the parts that they are split into. TILED is COLLECTIVE for
// tiles of W lanes, all of which take part; on the host `own` are the tile's values and `rank` the lane's place in it.
#pragma once
#include "simulation.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

// The lanes of `m` whose keys, below `keys`, are the lane's own: by votes alone.
__device__ inline u32 with_same_key(u32 m, u32 key, u32 keys) {
    u32 mine = 0;
    for (u32 k = 0; k < keys; k++) {
        u32 those = __ballot_sync(m, key == k);
        if (key == k) mine = those;
    }
    return mine;
}
template <int W> constexpr u32 whole_tile() { return W == 32 ? ~0u : (1u << W % 32) - 1; }

#define TILED(name, device_result, host_result)                                                                           \
    template <int W> __device__ inline u32 name(u32, u32, u32 v, u32 k) {                                                 \
        const auto tile = cg::tiled_partition<W>(cg::this_thread_block());                                                \
        (void)k;                                                                                                          \
        return device_result;                                                                                             \
    }                                                                                                                     \
    template <int W> static u32 host_##name(u32, u32 lane, const u32 *values, u32 k) {                                    \
        const u32 rank = lane % W, *own = values + (lane - rank), v = own[rank], all = whole_tile<W>();                   \
        (void)k, (void)v, (void)all;                                                                                      \
        return host_result;                                                                                               \
    }
template <class Tile> __device__ inline u32 match_all_of(const Tile &tile, u32 v) { int p; u32 r = tile.match_all(v, p); return p ? r ^ 5 : r; }
// What a lane knows of its part of a tile.
template <class Group> __device__ inline u32 facts(const Group &part, u32 v) {
    return cg::reduce(part, v, cg::plus<u32>()) + part.size() * 77 + part.thread_rank() * 7 + part.ballot(v & 1) + part.shfl(v, 0) * 3;
}
inline u32 host_facts(u32 part, u32 rank, const u32 *own) {
    u32 sum = 0, size = __builtin_popcount(part), before = __builtin_popcount(part & ((1u << rank) - 1)), votes = 0, place = 0;
    for (u32 l = 0; l < 32; l++)
        if (part >> l & 1) sum += own[l], votes |= (own[l] & 1) << place++;
    return sum + size * 77 + before * 7 + votes + own[__builtin_ctz(part)] * 3;
}

TILED(tile_ballot, tile.ballot(v >> (k & 31) & 1), members_where(all, [=](u32 l) { return own[l] >> (k & 31) & 1; }))
TILED(tile_any, u32(tile.any((v & 7) == (k & 7))), members_where(all, [=](u32 l) { return (own[l] & 7) == (k & 7); }) != 0)
TILED(tile_all, u32(tile.all((v & 7) != (k & 7))), members_where(all, [=](u32 l) { return (own[l] & 7) == (k & 7); }) == 0)
TILED(tile_match_any, tile.match_any(v & 3), members_where(all, [=](u32 l) { return (own[l] & 3) == (v & 3); }))
TILED(tile_match_any_wide, tile.match_any(u64(v & 5) << 33), members_where(all, [=](u32 l) { return (own[l] & 5) == (v & 5); }))
TILED(tile_match_all, match_all_of(tile, v & 1), (members_where(all, [=](u32 l) { return (own[l] & 1) == (v & 1); }) == all ? all ^ 5 : 0))
TILED(tile_shuffle, tile.shfl(v, k % W), own[k % W])
TILED(tile_shuffle_any, tile.shfl(v, (v + k) % W), own[(v + k) % W])
TILED(tile_shuffle_wide, u32(tile.shfl(u64(v) << 32 | ~v, k % W) >> 16), u32((u64(own[k % W]) << 32 | u32(~own[k % W])) >> 16))
TILED(tile_up, tile.shfl_up(v, k % W), own[rank >= k % W ? rank - k % W : rank])
TILED(tile_down, tile.shfl_down(v, k % W), own[rank + k % W < W ? rank + k % W : rank])
TILED(tile_xor, tile.shfl_xor(v, k % W), own[rank ^ k % W])
TILED(tile_sum, cg::reduce(tile, v, cg::plus<u32>()), folded(all, own, [](u32 a, u32 b) { return a + b; }))
TILED(tile_least, u32(cg::reduce(tile, s32(v), cg::less<s32>())), folded(all, own, [](u32 a, u32 b) { return s32(a) < s32(b) ? a : b; }))
TILED(tile_most, cg::reduce(tile, v, cg::greater<u32>()), folded(all, own, [](u32 a, u32 b) { return a > b ? a : b; }))
TILED(tile_odd, cg::reduce(tile, v, cg::bit_xor<u32>()), folded(all, own, [](u32 a, u32 b) { return a ^ b; }))
TILED(tile_sum_wide, u32(cg::reduce(tile, u64(v) << 20, cg::plus<u64>()) >> 20), folded(all, own, [](u32 a, u32 b) { return a + b; }))
TILED(tile_sum_up_to, cg::inclusive_scan(tile, v), folded(all & ((2u << rank) - 1), own, [](u32 a, u32 b) { return a + b; }))
TILED(tile_sum_before, cg::exclusive_scan(tile, v), rank ? folded(all & ((1u << rank) - 1), own, [](u32 a, u32 b) { return a + b; }) : 0)
TILED(tile_labels, facts(cg::labeled_partition(tile, v & 3), v), host_facts(members_where(all, [=](u32 l) { return (own[l] & 3) == (v & 3); }), rank, own))
TILED(tile_halves, facts(cg::binary_partition(tile, (v & 4) != 0), v), host_facts(members_where(all, [=](u32 l) { return (own[l] & 4) == (v & 4); }), rank, own))
