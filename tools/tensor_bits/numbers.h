// Vectors of numbers that make a matrix instruction show its rule: kinds of numbers, and formats to write them in.
#pragma once

#include <cmath>
#include <cstdint>

struct Format {
    int bits, exponent, fraction; // the sign comes first; bits below the fraction are ignored
    bool infinities;              // else only the last value of all is not a number, as in e4m3
    int bias() const { return (1 << (exponent - 1)) - 1; }
    uint32_t top() const { return (1u << exponent) - 1; }
    int ignored() const { return bits - 1 - exponent - fraction; }
};
constexpr Format F16{16, 5, 10, true}, BF16{16, 8, 7, true}, TF32{32, 8, 10, true}, E4M3{8, 4, 3, false}, E5M2{8, 5, 2, true}, F32{32, 8, 23, true};

// significand · 2^exponent, with the sign in the significand.
struct Number {
    enum { FINITE, INFINITE, NAN_ } kind;
    int64_t significand;
    int exponent, leading; // leading: the exponent of a normal number's first bit, the least of the format for subnormal ones
};
inline Number decode(Format f, uint32_t word) {
    word >>= f.ignored();
    const uint32_t field = word >> f.fraction & f.top(), fraction = word & ((1u << f.fraction) - 1), sign = word >> (f.exponent + f.fraction) & 1;
    if (f.infinities ? field == f.top() : field == f.top() && fraction == (1u << f.fraction) - 1)
        return {f.infinities && !fraction ? Number::INFINITE : Number::NAN_, sign ? -1 : 1, 0, 0};
    const int leading = (field ? (int)field : 1) - f.bias();
    const int64_t magnitude = (field ? 1ll << f.fraction : 0) | fraction;
    return {Number::FINITE, sign ? -magnitude : magnitude, leading - f.fraction, leading};
}
// The number nearest to a value in the direction of zero; the largest of the format if it is larger.
inline uint32_t encode(Format f, double value) {
    const uint32_t sign = std::signbit(value) ? 1u << (f.exponent + f.fraction) : 0;
    int e;
    if (value == 0 || value != value) return sign << f.ignored();
    std::frexp(value, &e);
    int field = e - 1 + f.bias();
    if (field < 1) field = 0;
    if (field >= (int)f.top()) return (sign | (f.top() << f.fraction) - 1) << f.ignored();
    const double unit = std::ldexp(1, (field ? field : 1) - f.bias() - f.fraction);
    const uint32_t magnitude = (uint32_t)(std::fabs(value) / unit);
    return (sign | ((field ? (uint32_t)(field - 1) << f.fraction : 0) + magnitude)) << f.ignored();
}

struct Noise {
    uint64_t state;
    explicit Noise(uint64_t seed) : state((seed + 1) * 0x9e3779b97f4a7c15ull) {}
    uint32_t operator()() {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return (uint32_t)(state * 0x2545f4914f6cdd1dull >> 32);
    }
    uint32_t below(uint32_t n) { return (uint32_t)((uint64_t)(*this)() * n >> 32); }
};

#define KINDS(X) \
    X(any_bits) X(like_one) X(subnormal) X(mostly_zero) X(any_exponent) X(specials) X(tiny_on_zero) X(few_bits) X(cancelling) X(cancelling_c) X(spread) X(huge)
enum Kind {
#define KIND(name) name,
    KINDS(KIND)
#undef KIND
    KIND_COUNT
};

inline uint32_t draw(Noise &noise, Format f, Kind kind, bool accumulator) {
    const uint32_t sign = noise.below(2), fraction = noise() & ((1u << f.fraction) - 1), bias = (uint32_t)f.bias(), finite = f.infinities ? f.top() : f.top() + 1;
    const uint32_t near = bias - (bias < 8 ? 4 : 6) + noise.below(bias < 8 ? 9 : 12), ignored = f.ignored() ? noise() & ((1u << f.ignored()) - 1) : 0;
    auto make = [&](uint32_t field, uint32_t part) { return ((sign << f.exponent | field) << f.fraction | part) << f.ignored() | ignored; };
    auto within = [&](uint32_t width) { return width >= bias ? 1 + noise.below(finite - 1) : bias - width + noise.below(2 * width + 1); };
    switch (kind) {
    case any_bits: return make(noise.below(f.top() + 1), fraction);
    case subnormal: return make(noise.below(4), fraction);
    case mostly_zero: return noise.below(3) ? make(0, 0) : make(near, fraction);
    case any_exponent: return make(noise.below(f.top()), fraction);
    case specials: return noise.below(60) ? make(near, fraction) : make(f.top(), noise.below(3) ? fraction : f.infinities ? 0 : (1u << f.fraction) - 1);
    case tiny_on_zero: return accumulator ? make(0, 0) : make(noise.below(bias / 2 + 1), fraction);
    case few_bits: return make(within(14), noise.below(2) ? 0 : 1u << noise.below((uint32_t)f.fraction));
    case spread: return make(within(accumulator ? 18 : 9), fraction);
    case huge: return make(f.top() - 1 - noise.below(accumulator ? 2 : (f.top() + 1) / 2), fraction);
    default: return make(near, fraction);
    }
}
