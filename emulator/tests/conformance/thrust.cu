// Thrust as NVIDIA's samples use it: CUB's radix sort and its reduction by key ask how many blocks fit on an SM.
#include "conformance.h"

#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

static std::vector<unsigned> drawn(size_t n) {
    std::vector<unsigned> found(n);
    for (size_t i = 0; i < n; i++) found[i] = (unsigned)(i * 2654435761u) >> 3;
    return found;
}

TEST(thrust_sorts_pairs_by_their_digits) {
    const size_t n = 40000;
    const std::vector<unsigned> keys = drawn(n);
    std::vector<unsigned> places(n), right = keys, got(n);
    for (size_t i = 0; i < n; i++) places[i] = (unsigned)i;
    thrust::device_vector<unsigned> k(keys.begin(), keys.end()), p(places.begin(), places.end());
    thrust::sort_by_key(k.begin(), k.end(), p.begin());
    thrust::copy(k.begin(), k.end(), got.begin());
    thrust::copy(p.begin(), p.end(), places.begin());
    std::sort(right.begin(), right.end());
    for (size_t i = 0; i < n; i++) EXPECT(got[i] == right[i] && keys[places[i]] == right[i]);
    return true;
}
TEST(thrust_reduces_segments_by_key) {
    const size_t n = 20000;
    std::vector<unsigned> keys(n), values = drawn(n), right((n + 6) / 7);
    for (size_t i = 0; i < n; i++) keys[i] = (unsigned)(i / 7), right[i / 7] += values[i];
    thrust::device_vector<unsigned> k(keys.begin(), keys.end()), v(values.begin(), values.end()), ids(n), sums(n);
    const auto ends = thrust::reduce_by_key(k.begin(), k.end(), v.begin(), ids.begin(), sums.begin());
    EXPECT((size_t)(ends.second - sums.begin()) == right.size());
    std::vector<unsigned> got(right.size());
    thrust::copy(sums.begin(), ends.second, got.begin());
    EXPECT(got == right);
    return true;
}
