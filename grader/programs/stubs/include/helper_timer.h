// A rewrite of what programs use from the CUDA samples' helper_timer.h: stopwatches in milliseconds.
#pragma once

#include <chrono>

class StopWatchInterface {
public:
    void start() {
        begin_ = std::chrono::steady_clock::now();
        running_ = true;
    }
    void stop() {
        total_ms_ += current_ms();
        running_ = false;
        ++sessions_;
    }
    void reset() {
        total_ms_ = 0;
        sessions_ = 0;
        begin_ = std::chrono::steady_clock::now();
    }
    float getTime() { return float(total_ms_ + current_ms()); }
    float getAverageTime() { return sessions_ > 0 ? float(total_ms_ / sessions_) : 0.0f; }

private:
    double current_ms() const {
        if (!running_) return 0;
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_).count();
    }

    std::chrono::steady_clock::time_point begin_;
    double total_ms_ = 0;
    int sessions_ = 0;
    bool running_ = false;
};

inline bool sdkCreateTimer(StopWatchInterface **timer) {
    *timer = new StopWatchInterface;
    return true;
}

inline bool sdkDeleteTimer(StopWatchInterface **timer) {
    delete *timer;
    *timer = nullptr;
    return true;
}

inline bool sdkStartTimer(StopWatchInterface **timer) { return *timer ? (*timer)->start(), true : false; }
inline bool sdkStopTimer(StopWatchInterface **timer) { return *timer ? (*timer)->stop(), true : false; }
inline bool sdkResetTimer(StopWatchInterface **timer) { return *timer ? (*timer)->reset(), true : false; }
inline float sdkGetTimerValue(StopWatchInterface **timer) { return *timer ? (*timer)->getTime() : -1.0f; }
inline float sdkGetAverageTimerValue(StopWatchInterface **timer) { return *timer ? (*timer)->getAverageTime() : -1.0f; }
