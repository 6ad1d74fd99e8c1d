// Rules by which matrix instructions may add products up, written independently of the emulator, with everything that could be
// otherwise as a parameter; and the search for the rule that fits a GPU's results best.
#pragma once

#include "numbers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

struct Rule {
    int fraction_bits = 25;   // that terms keep below the largest exponent
    int group = 16;           // products in one sum
    int order = 0;            // of products: 0 as in k; 1 the lower two of every four first; 2 even ones first; 3 k and k + half in turn
    int result_bits = 23;     // fraction bits of f32 results
    int result_rounding = 0;  // 0 to zero, 1 to nearest even
    int term_rounding = 0;    // 0 to zero, 1 down, 2 to nearest even
    int least_top = -133;     // the least exponent that terms are aligned to
    int normalized = 0;       // 1: a product of 2 or more counts with its own exponent
    int late_c = 0;           // 1: C is added last, as a float
    int as_halves = 0;        // 1: elements are halves first, so that few are subnormal
    int flush = 0;            // 1: subnormal inputs are zero; 2: subnormal results are; 3: both
    int zero = 0;             // sign of a zero: 0 positive, 1 negative if all terms are, or C is
    int nan = 0;              // 0: 0x7fffffff, 1: 0x7fc00000, 2: C's payload made quiet, else 0x7fffffff (f16: the upper bits)
};
struct Parameter {
    const char *name;
    int Rule::*value;
    std::vector<int> choices;
};
inline const std::vector<Parameter> &parameters() {
    static const std::vector<Parameter> all = {
        {"fraction_bits", &Rule::fraction_bits, {10, 11, 12, 13, 14, 15, 16, 21, 22, 23, 24, 25, 26, 27, 28}},
        {"group", &Rule::group, {1, 2, 4, 8, 16, 32}},
        {"order", &Rule::order, {0, 1, 2, 3}},
        {"result_bits", &Rule::result_bits, {10, 11, 12, 13, 14, 15, 21, 22, 23}},
        {"result_rounding", &Rule::result_rounding, {0, 1}},
        {"term_rounding", &Rule::term_rounding, {0, 1, 2}},
        {"least_top", &Rule::least_top, {-1000, -150, -149, -148, -140, -136, -135, -134, -133, -132, -131, -130, -128, -127, -126, -125, -28, -14}},
        {"normalized", &Rule::normalized, {0, 1}},
        {"late_c", &Rule::late_c, {0, 1}},
        {"as_halves", &Rule::as_halves, {0, 1}},
        {"flush", &Rule::flush, {0, 1, 2, 3}},
        {"zero", &Rule::zero, {0, 1}},
        {"nan", &Rule::nan, {0, 1, 2}},
    };
    return all;
}

struct Vector {
    Format a, b, sum;
    int k;
    uint32_t x[32], y[32], c, result;
};

inline int64_t shift(int64_t magnitude, int places, int rounding, bool negative) {
    if (places >= 0) return places < 62 ? magnitude << places : 0;
    if (places <= -62) return rounding == 1 && negative && magnitude ? 1 : 0;
    const int64_t kept = magnitude >> -places, lost = magnitude & ((1ll << -places) - 1), half = 1ll << (-places - 1);
    if (rounding == 1) return kept + (negative && lost);
    if (rounding == 2) return kept + (lost > half || (lost == half && (kept & 1)));
    return kept;
}
// sum · 2^place as f16 (rounded to nearest even) or f32 (to `bits` fraction bits).
inline uint32_t result_of(Format f, int64_t sum, int place, int bits, int rounding, bool negative_zero) {
    const uint32_t sign = (sum < 0 || (sum == 0 && negative_zero) ? 1u : 0u) << (f.exponent + f.fraction);
    int64_t magnitude = sum < 0 ? -sum : sum;
    if (!magnitude) return sign;
    int leading = place + 63 - __builtin_clzll((uint64_t)magnitude);
    const int least = 1 - f.bias();
    int last = std::max(leading, least) - bits;
    magnitude = shift(magnitude, place - last, rounding ? 2 : 0, false);
    if (magnitude >> (bits + 1)) magnitude >>= 1, last++, leading++;
    const int field = magnitude >> bits ? last + bits + f.bias() : 0;
    if (field >= (int)f.top()) return sign | f.top() << f.fraction;
    if (!magnitude) return negative_zero && sign ? sign : 0;
    return sign | (uint32_t)field << f.fraction | (uint32_t)(magnitude & ((1ll << bits) - 1)) << (f.fraction - bits);
}

inline uint32_t quiet(const Rule &rule, Format f, uint32_t c) {
    const uint32_t all = (1u << (f.exponent + f.fraction)) - 1, canonical = f.top() << f.fraction | 1u << (f.fraction - 1);
    if (rule.nan == 1) return canonical;
    return rule.nan == 2 && decode(f, c).kind == Number::NAN_ ? c | canonical : all;
}

inline int place_in_order(int order, int k, int i) {
    switch (order) {
    case 1: return i < k / 2 ? i / 2 * 4 + i % 2 : (i - k / 2) / 2 * 4 + 2 + i % 2;
    case 2: return i < k / 2 ? 2 * i : 2 * (i - k / 2) + 1;
    case 3: return i / 2 + i % 2 * (k / 2);
    default: return i;
    }
}

inline Number as_half(Number n) {
    if (n.kind == Number::FINITE && n.significand) n.leading = std::max(1 - F16.bias(), n.exponent + 63 - __builtin_clzll((uint64_t)std::abs(n.significand)));
    return n;
}
// Two finite or infinite numbers of a format, added and rounded to nearest even; f32 sums are a processor's.
inline uint32_t rounded_sum(const Rule &rule, Format f, uint32_t x, uint32_t y, uint32_t c) {
    if (f.fraction == 23) {
        float a, b;
        memcpy(&a, &x, 4), memcpy(&b, &y, 4), a += b, memcpy(&x, &a, 4);
        return a != a ? quiet(rule, f, c) : x;
    }
    double sum = 0;
    for (const Number n : {decode(f, x), decode(f, y)})
        sum += n.kind == Number::NAN_ ? NAN : n.kind == Number::INFINITE ? (double)n.significand * INFINITY : std::ldexp((double)n.significand, n.exponent);
    if (sum != sum) return quiet(rule, f, c);
    if (std::isinf(sum)) return f.top() << f.fraction | (sum < 0 ? 1u << (f.bits - 1) : 0);
    return result_of(f, (int64_t)std::ldexp(sum, 24), -24, f.fraction, 1, false); // halves are multiples of 2^-24
}

inline uint32_t evaluate(const Rule &rule, const Vector &v) {
    const bool to_f16 = v.sum.fraction == 10;
    uint32_t accumulator = rule.late_c ? 0 : v.c;
    auto flushed = [&](Number n, Format f) { return (rule.flush & 1) && n.leading == 1 - f.bias() && !(n.significand >> f.fraction) && !(-n.significand >> f.fraction) ? Number{n.kind, 0, n.exponent, n.leading} : n; };
    for (int first = 0; first < v.k; first += rule.group) {
        Number terms[33];
        bool negative[33];
        int count = 0, top = rule.least_top;
        double special = 0;
        auto add = [&](Number n) {
            if (n.significand) top = std::max(top, n.leading + (rule.normalized && std::abs(n.significand) >> (n.leading - n.exponent + 1) ? 1 : 0));
            terms[count] = n, negative[count++] = n.significand < 0;
        };
        const Number c = decode(v.sum, accumulator);
        if (c.kind != Number::FINITE) special += c.kind == Number::NAN_ ? NAN : c.significand * INFINITY;
        else add(c), negative[0] = accumulator >> (v.sum.bits - 1);
        for (int i = first; i < std::min(first + rule.group, v.k); i++) {
            const int at = place_in_order(rule.order, v.k, i);
            Number x = flushed(decode(v.a, v.x[at]), v.a), y = flushed(decode(v.b, v.y[at]), v.b);
            if (rule.as_halves) x = as_half(x), y = as_half(y);
            if (x.kind == Number::FINITE && y.kind == Number::FINITE) {
                add({Number::FINITE, x.significand * y.significand, x.exponent + y.exponent, x.leading + y.leading});
                negative[count - 1] = (v.x[at] >> (v.a.bits - 1) ^ v.y[at] >> (v.b.bits - 1)) & 1;
            } else special += x.kind == Number::NAN_ || y.kind == Number::NAN_ ? NAN : (double)x.significand * (double)y.significand * INFINITY;
        }
        if (special != 0) {
            accumulator = special != special ? quiet(rule, v.sum, v.c) : v.sum.top() << v.sum.fraction | (special < 0 ? 1u << (v.sum.bits - 1) : 0);
            continue;
        }
        const int last = top - rule.fraction_bits;
        int64_t sum = 0;
        bool all_negative = true;
        for (int i = 0; i < count; i++) {
            const bool minus = terms[i].significand < 0;
            const int64_t magnitude = shift(minus ? -terms[i].significand : terms[i].significand, terms[i].exponent - last, rule.term_rounding, minus);
            sum += minus ? -magnitude : magnitude;
            all_negative &= negative[i];
        }
        accumulator = result_of(v.sum, sum, last, to_f16 ? 10 : rule.result_bits, to_f16 || rule.result_rounding, rule.zero && all_negative);
        if ((rule.flush & 2) && !(accumulator >> v.sum.fraction & v.sum.top())) accumulator = 0;
    }
    if (rule.late_c) return rounded_sum(rule, v.sum, accumulator, v.c, v.c);
    return accumulator;
}

inline size_t misses(const Rule &rule, const std::vector<Vector> &sample) {
    return (size_t)std::count_if(sample.begin(), sample.end(), [&](const Vector &v) { return evaluate(rule, v) != v.result; });
}
// Changes one parameter after the other as long as fewer vectors differ.
inline std::string nearest_rule(Rule rule, const std::vector<Vector> &sample) {
    size_t best = misses(rule, sample), before;
    std::string path = "expected rule: " + std::to_string(best) + " of " + std::to_string(sample.size()) + " differ";
    do {
        before = best;
        Rule next = rule;
        std::string step;
        for (const Parameter &p : parameters())
            for (int choice : p.choices) {
                Rule other = rule;
                other.*p.value = choice;
                const size_t count = misses(other, sample);
                if (count < best) best = count, next = other, step = "; " + std::string(p.name) + " = " + std::to_string(choice) + ": " + std::to_string(count);
            }
        rule = next, path += step;
    } while (best && best < before);
    return path;
}
