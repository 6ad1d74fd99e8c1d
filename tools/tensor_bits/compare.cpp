// tensor_bits ARCHITECTURE VECTORS [PREFIX [FILE]]: compares matrix instructions of the emulator with those of this machine's GPU,
// or, built without a GPU's code, with the rule of rules.h. VECTORS is the number of elements of D for each form whose name
// begins with PREFIX. FILE gets a few instructions of each kind: A, B, C, D.
//
// A line for each form and kind of numbers: elements compared, how many differ, and a hash of the reference's D that does not
// depend on the order of instructions. For a form that differs: its first difference with all inputs, and the rule that fits best.
#include "forms.h"
#include "numbers.h"
#include "rules.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

struct Form {
    const char *name;
    int rows, k, words;
    Format a, b, sum;
};
static const Form kForms[] = {
#define ENTRY(name, unit, a, b, c, k, words, text) {#name, unit == MMA ? 16 : 64, k, words, a, b, c},
    FORMS(ENTRY)
};
static const char *const kKinds[] = {
#define NAME(name) #name,
    KINDS(NAME)
};
constexpr size_t kSample = 1500, kSaved = 2; // vectors of each kind for the search, instructions of each kind in the file

// The rule that the publications give (cudaemu/runtime/tensor_sums.c names them).
static Rule published(const Form &f, int architecture) {
    Rule rule;
    const bool bytes = f.a.bits == 8, converted = bytes && architecture >= 90 && f.rows == 16;
    rule.fraction_bits = bytes && !converted ? 13 : architecture >= 90 ? 25 : 24;
    rule.result_bits = bytes && !converted ? 13 : 23;
    rule.group = converted ? 16 : (architecture >= 90 ? 256 : 128) / f.a.bits;
    rule.order = converted;
    rule.late_c = rule.as_halves = converted;
    return rule;
}

struct Batch {
    std::vector<unsigned> a, b, c, d;
    size_t rows_of_a, rows_of_b, elements; // words of each in one instruction
};

static Vector vector_of(const Form &f, const Batch &batch, size_t n, size_t element) {
    Vector v{f.a, f.b, f.sum, f.k, {}, {}, batch.c[n * batch.elements + element], batch.d[n * batch.elements + element]};
    const unsigned *row = &batch.a[n * batch.rows_of_a + element / COLUMNS * f.words], *column = &batch.b[n * batch.rows_of_b + element % COLUMNS * f.words];
    for (int i = 0; i < f.k; i++) {
        const int each = 32 / f.a.bits, at = i % each * f.a.bits;
        const uint32_t mask = f.a.bits == 32 ? ~0u : (1u << f.a.bits) - 1;
        v.x[i] = row[i / each] >> at & mask, v.y[i] = column[i / each] >> at & mask;
    }
    return v;
}

static double value(Format f, uint32_t word) {
    const Number n = decode(f, word);
    return n.kind == Number::FINITE ? std::ldexp((double)n.significand, n.exponent) : 0;
}

static void fill(int form, Kind kind, size_t n, Batch &batch) {
    const Form &f = kForms[form];
    Noise noise(((uint64_t)form * KIND_COUNT + kind) << 32 | n);
    auto draw_words = [&](unsigned *words, size_t count, Format format) {
        for (size_t i = 0; i < count; i++) {
            words[i] = 0;
            for (int at = 0; at < 32; at += format.bits) words[i] |= draw(noise, format, kind, false) << at;
        }
    };
    unsigned *a = &batch.a[n * batch.rows_of_a], *b = &batch.b[n * batch.rows_of_b], *c = &batch.c[n * batch.elements];
    draw_words(a, batch.rows_of_a, f.a), draw_words(b, batch.rows_of_b, f.b);
    for (size_t i = 0; i < batch.elements; i++) c[i] = draw(noise, f.sum, kind, true);
    if (kind == cancelling) { // neighbours in k, or words, with opposite products, but for their last bits
        const unsigned sign = f.a.bits == 8 ? 0x8080u : f.a.bits == 16 ? 0x8000u : 0;
        auto pair = [&](unsigned *words, size_t count, unsigned flip) {
            for (size_t i = 0; i < count; i++) {
                if (f.a.bits < 32) words[i] = (words[i] & 0xffff) * 0x10001u ^ flip ^ (noise.below(4) ? 0 : 1u << 16);
                else if (i % 2) words[i] = words[i - 1] ^ (flip ? 0x80000000u : 0) ^ (noise.below(4) ? 0 : 1u << 13);
            }
        };
        pair(a, batch.rows_of_a, f.a.bits < 32 ? sign : 1), pair(b, batch.rows_of_b, 0);
    }
    if (kind == cancelling_c) // C is nearly the negative of the products
        for (size_t i = 0; i < batch.elements; i++) {
            const Vector v = vector_of(f, batch, n, i);
            double sum = 0;
            for (int x = 0; x < f.k; x++) sum += value(f.a, v.x[x]) * value(f.b, v.y[x]);
            c[i] = encode(f.sum, -sum) ^ noise.below(4);
        }
}

static void in_parallel(size_t count, const std::function<void(size_t)> &work) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); t++)
        threads.emplace_back([&] {
            for (size_t from; (from = next.fetch_add(16)) < count;)
                for (size_t i = from; i < std::min(from + 16, count); i++) work(i);
        });
    for (auto &thread : threads) thread.join();
}

static void print_difference(const Form &f, const Vector &v, unsigned emulated) {
    printf("    expected %08x, emulator %08x: c %08x\n    a", v.result, emulated, v.c);
    for (int i = 0; i < f.k; i++) printf(" %0*x", f.a.bits / 4, v.x[i]);
    printf("\n    b");
    for (int i = 0; i < f.k; i++) printf(" %0*x", f.b.bits / 4, v.y[i]);
    printf("\n");
}

static bool compare(int form, int architecture, size_t vectors, FILE *file) {
    const Form &f = kForms[form];
    const size_t elements = (size_t)f.rows * COLUMNS, count = (vectors / KIND_COUNT + elements - 1) / elements;
    Batch batch{std::vector<unsigned>(count * f.rows * f.words), std::vector<unsigned>(count * COLUMNS * f.words), std::vector<unsigned>(count * elements),
                std::vector<unsigned>(count * elements), (size_t)f.rows * f.words, (size_t)COLUMNS * f.words, elements};
    std::vector<Vector> sample;
    std::mutex lock;
    size_t total = 0;
    const Rule rule = published(f, architecture);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        in_parallel(count, [&](size_t n) { fill(form, (Kind)kind, n, batch); });
#ifdef WITH_A_GPU
        if (const char *why = run_on_the_gpu(form, (unsigned)count, batch.a.data(), batch.b.data(), batch.c.data(), batch.d.data())) {
            printf("%s fails: %s\n", f.name, why);
            return false;
        }
#else
        in_parallel(count, [&](size_t n) {
            for (size_t i = 0; i < elements; i++) batch.d[n * elements + i] = evaluate(rule, vector_of(f, batch, n, i));
        });
#endif
        std::atomic<uint64_t> hash{0};
        std::atomic<size_t> differing{0};
        struct { size_t n, element; unsigned emulated; } first{~size_t{0}, 0, 0};
        in_parallel(count, [&](size_t n) {
            unsigned d[64 * COLUMNS];
            emulate(form, (unsigned)architecture, &batch.a[n * batch.rows_of_a], &batch.b[n * batch.rows_of_b], &batch.c[n * elements], d);
            uint64_t words = 0xcbf29ce484222325ull ^ n;
            for (size_t i = 0; i < elements; i++) {
                words = (words ^ batch.d[n * elements + i]) * 0x100000001b3ull;
                if (d[i] == batch.d[n * elements + i]) continue;
                differing++;
                const std::lock_guard<std::mutex> guard(lock);
                if (n < first.n) first = {n, i, d[i]};
                if (sample.size() < kSample * (size_t)(kind + 1)) sample.push_back(vector_of(f, batch, n, i));
            }
            hash += words;
        });
        for (size_t i = 0; i < kSample && i < count * elements; i++) sample.push_back(vector_of(f, batch, i * 7919 % (count * elements) / elements, i % elements));
        printf("%s %s %zu vectors, %zu differ, %016llx\n", f.name, kKinds[kind], count * elements, differing.load(), (unsigned long long)hash.load());
        if (differing) print_difference(f, vector_of(f, batch, first.n, first.element), first.emulated);
        for (size_t n = 0; file && n < std::min(kSaved, count); n++) {
            fwrite(&batch.a[n * batch.rows_of_a], 4, batch.rows_of_a, file), fwrite(&batch.b[n * batch.rows_of_b], 4, batch.rows_of_b, file);
            fwrite(&batch.c[n * elements], 4, elements, file), fwrite(&batch.d[n * elements], 4, elements, file);
        }
        total += differing;
    }
    if (total) printf("%s: %s\n", f.name, nearest_rule(rule, sample).c_str());
    fflush(stdout);
    return total == 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: tensor_bits ARCHITECTURE VECTORS [PREFIX [FILE]]\n"), 2;
    const int architecture = atoi(argv[1]);
    FILE *file = argc > 4 ? fopen(argv[4], "wb") : nullptr;
    bool ok = true;
    for (int form = 0; form < FORM_COUNT; form++) {
        const bool exists = architecture >= 90 || (kForms[form].rows == 16 && (architecture >= 89 || kForms[form].a.bits > 8));
        if (exists && (argc < 4 || !strncmp(kForms[form].name, argv[3], strlen(argv[3])))) ok &= compare(form, architecture, (size_t)atoll(argv[2]), file);
    }
    return (file && fclose(file)) || !ok;
}
