// A rewrite of what programs use from the CUDA samples' helper_image.h: PGM and PPM images, files of numbers, and
// comparisons with a reference.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "helper_string.h"

namespace helper_image {
// Conversions between an image's bytes and a program's numbers: floating-point numbers go from 0 to 1.
inline void from_byte(unsigned char byte, unsigned char &value) { value = byte; }
inline void from_byte(unsigned char byte, float &value) { value = float(byte) / 255.0f; }
inline unsigned char to_byte(unsigned char value) { return value; }
inline unsigned char to_byte(float value) { return (unsigned char)(value * 255.0f); }

// Reads a number of a netpbm header. Comments go from # to the end of the line.
inline int header_number(std::FILE *file) {
    int c = std::fgetc(file), number = 0;
    while (c == '#' || std::isspace(c)) {
        if (c == '#')
            while (c != '\n' && c != EOF) c = std::fgetc(file);
        c = std::fgetc(file);
    }
    for (; std::isdigit(c) && number < 100000000; c = std::fgetc(file)) number = number * 10 + (c - '0');
    return number;  // the one white space after the number has been read
}

// Reads the bytes of a binary PGM (P5, one channel) or PPM (P6, three channels).
inline bool load(const char *name, std::vector<unsigned char> &bytes, unsigned &width, unsigned &height, unsigned &channels) {
    std::FILE *file = name ? std::fopen(name, "rb") : nullptr;
    if (!file) return std::fprintf(stderr, "cannot open %s\n", name ? name : "(no name)"), false;
    const int p = std::fgetc(file), kind = std::fgetc(file);
    channels = kind == '5' ? 1 : 3;
    bool ok = p == 'P' && (kind == '5' || kind == '6');
    if (ok) {
        width = header_number(file), height = header_number(file);
        ok = header_number(file) == 255 && width > 0 && height > 0;
    }
    if (ok) bytes.resize(size_t(width) * height * channels);
    ok = ok && std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if (!ok) std::fprintf(stderr, "%s is not a binary PGM or PPM image with 8 bits per channel\n", name);
    std::fclose(file);
    return ok;
}

inline bool save(const char *name, const std::vector<unsigned char> &bytes, unsigned width, unsigned height, unsigned channels) {
    std::FILE *file = std::fopen(name, "wb");
    if (!file) return std::fprintf(stderr, "cannot write %s\n", name), false;
    std::fprintf(file, "P%d\n%u %u\n255\n", channels == 1 ? 5 : 6, width, height);
    const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return std::fclose(file) == 0 && ok;
}

// Reads an image of `wanted` channels into the program's pixels of `own` channels; a channel that the file lacks is 0.
template <typename T>
bool load_as(const char *name, T **data, unsigned *width, unsigned *height, unsigned wanted, unsigned own) {
    std::vector<unsigned char> bytes;
    unsigned channels;
    if (!load(name, bytes, *width, *height, channels) || channels != wanted) return false;
    const size_t pixels = size_t(*width) * *height;
    if (!*data) *data = static_cast<T *>(std::malloc(pixels * own * sizeof(T)));
    for (size_t i = 0; i < pixels; ++i)
        for (unsigned c = 0; c < own; ++c) from_byte(c < channels ? bytes[i * channels + c] : 0, (*data)[i * own + c]);
    return true;
}

template <typename T>
bool save_as(const char *name, const T *data, unsigned width, unsigned height, unsigned channels, unsigned own) {
    std::vector<unsigned char> bytes(size_t(width) * height * channels);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = to_byte(data[i / channels * own + i % channels]);
    return save(name, bytes, width, height, channels);
}

inline bool same_images(const char *one, const char *other, float epsilon, float threshold) {
    std::vector<unsigned char> a, b;
    unsigned wa, ha, ca, wb, hb, cb;
    if (!load(one, a, wa, ha, ca) || !load(other, b, wb, hb, cb) || wa != wb || ha != hb || ca != cb) return false;
    size_t wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) wrong += std::abs(int(a[i]) - int(b[i])) > epsilon;
    return threshold == 0.0f ? wrong == 0 : double(wrong) < double(threshold) * double(a.size());
}
}  // namespace helper_image

template <typename T>
bool sdkLoadPGM(const char *name, T **data, unsigned int *width, unsigned int *height) {
    return helper_image::load_as(name, data, width, height, 1, 1);
}
template <typename T>
bool sdkSavePGM(const char *name, T *data, unsigned int width, unsigned int height) {
    return helper_image::save_as(name, data, width, height, 1, 1);
}
template <typename T>
bool sdkLoadPPM4(const char *name, T **data, unsigned int *width, unsigned int *height) {
    return helper_image::load_as(name, data, width, height, 3, 4);
}
inline bool sdkLoadPPM4ub(const char *name, unsigned char **data, unsigned int *width, unsigned int *height) {
    return sdkLoadPPM4(name, data, width, height);
}
inline bool sdkSavePPM4ub(const char *name, unsigned char *data, unsigned int width, unsigned int height) {
    return helper_image::save_as(name, data, width, height, 3, 4);
}
inline bool sdkLoadPPMub(const char *name, unsigned char **data, unsigned int *width, unsigned int *height) {
    return helper_image::load_as(name, data, width, height, 3, 3);
}
inline bool sdkSavePPMub(const char *name, unsigned char *data, unsigned int width, unsigned int height) {
    return helper_image::save_as(name, data, width, height, 3, 3);
}
inline bool sdkComparePPM(const char *one, const char *other, float epsilon, float threshold, bool = false) {
    return helper_image::same_images(one, other, epsilon, threshold);
}
inline bool sdkComparePGM(const char *one, const char *other, float epsilon, float threshold, bool = false) {
    return helper_image::same_images(one, other, epsilon, threshold);
}

// Reads numbers written as text, separated by white space.
template <typename T>
bool sdkReadFile(const char *name, T **data, unsigned int *count, bool = false) {
    std::ifstream file(name);
    std::vector<T> values;
    for (T value; file >> value;) values.push_back(value);
    if (values.empty()) return false;
    if (!*data) *data = static_cast<T *>(std::malloc(values.size() * sizeof(T)));
    *count = static_cast<unsigned int>(values.size());
    std::copy(values.begin(), values.end(), *data);
    return true;
}

template <typename T, typename S>
bool sdkWriteFile(const char *name, const T *data, unsigned int count, const S, bool, bool append = false) {
    std::ofstream file(name, append ? std::ios::app : std::ios::out);
    for (unsigned int i = 0; i < count; ++i) file << data[i] << ' ';
    return bool(file.flush());
}

inline void sdkDumpBin(void *data, unsigned int bytes, const char *name) {
    std::ofstream(name, std::ios::binary).write(static_cast<const char *>(data), bytes);
}

// True if few enough numbers differ from the reference by more than epsilon: none if the threshold is 0, else less than
// that fraction of all numbers.
template <typename T, typename S>
bool compareData(const T *reference, const T *data, const unsigned int count, const S epsilon, const float threshold) {
    unsigned int wrong = 0;
    for (unsigned int i = 0; i < count; ++i) {
        const double difference = std::fabs(double(reference[i]) - double(data[i]));
        wrong += !(difference <= double(epsilon));  // counts NaN
    }
    return threshold == 0.0f ? wrong == 0 : double(wrong) < double(threshold) * count;
}

template <typename T, typename S>
bool compareDataAsFloatThreshold(const T *reference, const T *data, const unsigned int count, const S epsilon, const float threshold) {
    return compareData(reference, data, count, epsilon, threshold);
}

inline bool sdkCompareBin2BinFloat(const char *name, const char *reference, unsigned int count, const float epsilon, const float threshold, char *program) {
    std::vector<float> values[2];
    const char *names[] = {name, reference};
    for (int i = 0; i < 2; ++i) {
        values[i].resize(count);
        char *path = sdkFindFilePath(names[i], program);
        std::ifstream file(path ? path : names[i], std::ios::binary);
        std::free(path);
        if (!file.read(reinterpret_cast<char *>(values[i].data()), std::streamsize(count * sizeof(float)))) return false;
    }
    return compareData(values[1].data(), values[0].data(), count, epsilon, threshold);
}

// True if the distance of data from the reference is below epsilon times the norm of the reference.
inline bool sdkCompareL2fe(const float *reference, const float *data, const unsigned int count, const float epsilon) {
    double error = 0, norm = 0;
    for (unsigned int i = 0; i < count; ++i) {
        const double difference = double(reference[i]) - data[i];
        error += difference * difference;
        norm += double(reference[i]) * reference[i];
    }
    return norm > 0 && std::sqrt(error) < epsilon * std::sqrt(norm);
}
