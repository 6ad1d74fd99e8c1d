// Lanes of one warp that wait for each other: since compute capability 7.0 each thread goes on in the end.
#include "conformance.h"
#include <cuda/atomic>
#include <cuda/barrier>

// Every thread of the grid adds to *sum in a critical section; each takes number *sum, which nobody else may get.
template <class Section> static bool numbers_are_shared_out(Section section, int blocks, int threads) {
    const int n = blocks * threads;
    Array<int> lock(1), sum(1), taken(n);
    section(blocks, threads, lock.device, sum.device, taken.device);
    if (!finished()) return false;
    std::vector<int> got = taken.down();
    std::sort(got.begin(), got.end());
    return equal(got, [](size_t i) { return (int)i; }) && equal(sum.down(), [=](size_t) { return n; }) && equal(lock.down(), [](size_t) { return 0; });
}
#define LAUNCH(kernel) [](int b, int t, int *lock, int *sum, int *taken) { kernel<<<b, t>>>(lock, sum, taken); }
__device__ int next_number(int *sum) {
    __threadfence();
    int mine = *(volatile int *)sum;
    *(volatile int *)sum = mine + 1;
    __threadfence();
    return mine;
}

__global__ void compare_and_swap_lock(int *lock, int *sum, int *taken) {
    while (atomicCAS(lock, 0, 1) != 0);
    int mine = next_number(sum);
    atomicExch(lock, 0);
    taken[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
TEST(lock_taken_by_every_lane) { return numbers_are_shared_out(LAUNCH(compare_and_swap_lock), 3, 80); }

__global__ void exchange_lock(int *lock, int *sum, int *taken) {
    while (atomicExch(lock, 1)) __threadfence();
    int mine = next_number(sum);
    atomicExch(lock, 0);
    taken[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
TEST(exchange_lock_taken_by_every_lane) { return numbers_are_shared_out(LAUNCH(exchange_lock), 2, 64); }

__global__ void sleeping_lock(int *lock, int *sum, int *taken) {
    unsigned ns = 8;
    while (atomicCAS(lock, 0, 1) != 0) {
        __nanosleep(ns);
        if (ns < 256) ns *= 2;
    }
    int mine = next_number(sum);
    atomicExch(lock, 0);
    taken[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
TEST(lock_with_backoff) { return numbers_are_shared_out(LAUNCH(sleeping_lock), 2, 64); }

__global__ void lock_left_by_break(int *lock, int *sum, int *taken) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (;;)
        if (atomicCAS(lock, 0, 1) == 0) {
            taken[i] = next_number(sum);
            atomicExch(lock, 0);
            break;
        }
}
TEST(critical_section_in_the_loop) { return numbers_are_shared_out(LAUNCH(lock_left_by_break), 2, 64); }

__global__ void lock_until_done(int *lock, int *sum, int *taken) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            taken[blockIdx.x * blockDim.x + threadIdx.x] = next_number(sum);
            atomicExch(lock, 0);
            done = true;
        }
    }
}
TEST(lock_until_done_flag) { return numbers_are_shared_out(LAUNCH(lock_until_done), 2, 64); }

__device__ int tickets, serving;
__global__ void ticket_lock(int *, int *sum, int *taken) {
    const int ticket = atomicAdd(&tickets, 1);
    while (*(volatile int *)&serving != ticket);
    int mine = next_number(sum);
    *(volatile int *)&serving = ticket + 1;
    taken[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
TEST(ticket_lock_of_all_lanes) { return numbers_are_shared_out(LAUNCH(ticket_lock), 2, 64); }

__global__ void flag_of_atomic_class(int *lock, int *sum, int *taken) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(*lock);
    while (flag.exchange(1, cuda::memory_order_acquire)) {}
    int mine = *sum;
    *sum = mine + 1;
    flag.store(0, cuda::memory_order_release);
    taken[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
TEST(lock_of_atomic_class) { return numbers_are_shared_out(LAUNCH(flag_of_atomic_class), 2, 64); }

// Each lane takes the lock several times, and lanes are in different rounds at the same time.
__global__ void many_rounds(int *lock, int *sum, int *taken) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < 5; round++) {
        while (atomicCAS(lock, 0, 1) != 0);
        int mine = next_number(sum);
        atomicExch(lock, 0);
        taken[mine] = round * 1000 + i;
    }
}
TEST(lock_taken_in_each_round_of_a_loop) {
    const int threads = 96;
    Array<int> lock(1), sum(1), taken(threads * 5);
    many_rounds<<<1, threads>>>(lock.device, sum.device, taken.device);
    if (!finished()) return false;
    std::vector<int> got = taken.down();
    std::sort(got.begin(), got.end());
    return equal(got, [=](size_t i) { return (int)(i / threads * 1000 + i % threads); });
}

// Lanes go through the critical section one after the other, in the order of their numbers or against it.
__global__ void one_after_the_other(int *out, int backwards) {
    __shared__ volatile int turn;
    __shared__ int count;
    const int t = threadIdx.x;
    if (t == 0) turn = 0, count = 0;
    __syncthreads();
    while (turn != (backwards ? (int)blockDim.x - 1 - t : t));
    __threadfence_block();
    out[count] = t;
    count = count + 1;
    __threadfence_block();
    turn = turn + 1;
}
TEST(lanes_take_turns_upwards) {
    Array<int> out(64);
    one_after_the_other<<<1, 64>>>(out.device, 0);
    return finished() && equal(out.down(), [](size_t i) { return (int)i; });
}
TEST(lanes_take_turns_downwards) {
    Array<int> out(50);
    one_after_the_other<<<1, 50>>>(out.device, 1);
    return finished() && equal(out.down(), [](size_t i) { return 49 - (int)i; });
}

// One lane tells the rest; which side of the branch comes first in the code must not matter.
__global__ void told_by_one(int *out, int teller) {
    __shared__ volatile int flag;
    __shared__ int value;
    if (threadIdx.x == 0) flag = 0;
    __syncwarp();
    if (threadIdx.x != teller) {
        while (flag == 0);
        __threadfence_block();
        out[threadIdx.x] = value + threadIdx.x;
    } else {
        value = 1000;
        __threadfence_block();
        flag = 1;
        out[threadIdx.x] = -1;
    }
}
__global__ void tells_the_rest(int *out, int teller) {
    __shared__ volatile int flag;
    __shared__ int value;
    if (threadIdx.x == 0) flag = 0;
    __syncwarp();
    if (threadIdx.x == teller) {
        value = 1000;
        __threadfence_block();
        flag = 1;
        out[threadIdx.x] = -1;
    } else {
        while (flag == 0) __nanosleep(20);
        __threadfence_block();
        out[threadIdx.x] = value + threadIdx.x;
    }
}
TEST(lanes_wait_for_a_lane_of_the_other_branch) {
    Array<int> a(32), b(32);
    told_by_one<<<1, 32>>>(a.device, 5);
    tells_the_rest<<<1, 32>>>(b.device, 31);
    return finished() && equal(a.down(), [](size_t i) { return i == 5 ? -1 : 1000 + (int)i; }) &&
           equal(b.down(), [](size_t i) { return i == 31 ? -1 : 1000 + (int)i; });
}

// The flag is set behind the loop, by a lane that did not have to wait.
__global__ void set_behind_the_loop(int *out) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncwarp();
    int rounds = 0;
    while (threadIdx.x != 7 && flag == 0) rounds++;
    if (threadIdx.x == 7) {
        __threadfence_block();
        flag = 1;
    }
    out[threadIdx.x] = threadIdx.x == 7 ? rounds : 100 + (int)threadIdx.x;
}
TEST(flag_set_behind_the_loop_that_waits_for_it) {
    Array<int> out(32);
    set_behind_the_loop<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return i == 7 ? 0 : 100 + (int)i; });
}

// Half of the lanes produce, half consume, through one place each.
__global__ void producers_and_consumers(int *out, int items) {
    __shared__ volatile int full[16], box[16];
    const int lane = threadIdx.x, pair = lane % 16;
    if (lane < 16) full[lane] = 0;
    __syncwarp();
    int sum = 0;
    for (int i = 0; i < items; i++) {
        if (lane >= 16) {
            while (full[pair]);
            __threadfence_block();
            box[pair] = i * (pair + 1);
            __threadfence_block();
            full[pair] = 1;
        } else {
            while (!full[pair]);
            __threadfence_block();
            sum += box[pair];
            __threadfence_block();
            full[pair] = 0;
        }
    }
    out[lane] = sum;
}
TEST(producing_and_consuming_lanes) {
    Array<int> out(32);
    producers_and_consumers<<<1, 32>>>(out.device, 60);
    return finished() && equal(out.down(), [](size_t i) { return i < 16 ? 60 * 59 / 2 * ((int)i + 1) : 0; });
}

// Behind the critical section the warp, then the block, meets again.
__global__ void meets_again(int *lock, int *sum, int *out) {
    const int t = threadIdx.x;
    while (atomicCAS(lock, 0, 1) != 0);
    int mine = next_number(sum);
    atomicExch(lock, 0);
    __syncwarp();
    int total = mine;
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    unsigned odd = __ballot_sync(0xffffffffu, t & 1);
    __syncthreads();
    out[t] = *(volatile int *)sum;
    out[blockDim.x + t] = (int)odd;
    atomicAdd(&out[2 * blockDim.x], t % 32 == 0 ? total : 0);
}
TEST(warp_and_block_meet_behind_the_critical_section) {
    const int n = 96;
    Array<int> lock(1), sum(1), out(2 * n + 1);
    meets_again<<<1, n>>>(lock.device, sum.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return i < n ? n : i < 2 * n ? (int)0xaaaaaaaa : n * (n - 1) / 2; });
}

__global__ void meets_in_each_round(int *lock, int *sum, int *out) {
    int v = threadIdx.x;
    for (int round = 0; round < 4; round++) {
        while (atomicCAS(lock, 0, 1) != 0);
        next_number(sum);
        atomicExch(lock, 0);
        v = __shfl_sync(0xffffffffu, v, (threadIdx.x + 1) % 32) + round;
        __syncthreads();
        if (threadIdx.x == 0) out[64 + round] = *(volatile int *)sum;
        __syncthreads();
    }
    out[threadIdx.x] = v;
}
TEST(warp_meets_in_each_round) {
    Array<int> lock(1), sum(1), out(68);
    meets_in_each_round<<<1, 64>>>(lock.device, sum.device, out.device);
    return finished() && equal(out.down(), [](size_t i) { return i < 64 ? (int)(i / 32 * 32 + (i + 4) % 32) + 6 : (int)(i - 63) * 64; });
}

// Lanes lock buckets, several at once, and put themselves into the bucket's list.
__global__ void buckets(int *locks, int *heads, int *next, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, bucket = i * 7 % count;
    bool waiting = true;
    while (waiting) {
        if (atomicCAS(&locks[bucket], 0, 1) == 0) {
            __threadfence();
            next[i] = ((volatile int *)heads)[bucket];
            ((volatile int *)heads)[bucket] = i;
            __threadfence();
            atomicExch(&locks[bucket], 0);
            waiting = false;
        }
    }
}
TEST(a_lock_for_each_bucket) {
    const int n = 256, count = 5;
    Array<int> locks(count), heads(count, -1), next(n, -2);
    buckets<<<2, n / 2>>>(locks.device, heads.device, next.device, count);
    if (!finished()) return false;
    heads.down(), next.down();
    std::vector<int> seen(n);
    for (int b = 0; b < count; b++)
        for (int i = heads.host[b]; i >= 0; i = next.host[i]) EXPECT(i % count == b * 3 % count && !seen[i]++);
    return equal(seen, [](size_t) { return 1; });
}

// Each lane needs the locks of two neighbours, the lower first.
__global__ void two_locks(int *locks, int *values) {
    const int a = threadIdx.x % 8, b = (a + 1) % 8, first = min(a, b), second = max(a, b);
    while (atomicCAS(&locks[first], 0, 1) != 0);
    while (atomicCAS(&locks[second], 0, 1) != 0);
    __threadfence();
    ((volatile int *)values)[first]++;
    ((volatile int *)values)[second]++;
    __threadfence();
    atomicExch(&locks[second], 0);
    atomicExch(&locks[first], 0);
}
TEST(two_locks_at_a_time) {
    Array<int> locks(8), values(8);
    two_locks<<<1, 64>>>(locks.device, values.device);
    return finished() && equal(values.down(), [](size_t) { return 16; });
}

// One lane waits for another warp while its own warp stands at the barrier.
__global__ void one_lane_waits_for_a_warp(int *out) {
    __shared__ volatile int flag;
    __shared__ int value;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 3) {
        while (flag == 0);
        __threadfence_block();
    } else if (threadIdx.x == 63) {
        value = 17;
        __threadfence_block();
        flag = 1;
    }
    __syncthreads();
    out[threadIdx.x] = value + threadIdx.x;
}
TEST(one_lane_waits_for_another_warp) {
    Array<int> out(64);
    one_lane_waits_for_a_warp<<<1, 64>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { return 17 + (int)i; });
}

// Lanes arrive at a barrier object on both sides of a branch.
__global__ void barrier_object_in_both_branches(int *out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int s[32];
    if (threadIdx.x == 0) init(&barrier, 32);
    __syncthreads();
    if (threadIdx.x < 13) {
        s[threadIdx.x] = threadIdx.x;
        barrier.arrive_and_wait();
        out[threadIdx.x] = s[31 - threadIdx.x];
    } else {
        s[threadIdx.x] = threadIdx.x * 2;
        barrier.arrive_and_wait();
        out[threadIdx.x] = s[31 - threadIdx.x] + 100;
    }
}
TEST(lanes_of_both_branches_meet_at_a_barrier_object) {
    Array<int> out(32);
    barrier_object_in_both_branches<<<1, 32>>>(out.device);
    return finished() && equal(out.down(), [](size_t i) { int j = 31 - (int)i; return (j < 13 ? j : 2 * j) + (i < 13 ? 0 : 100); });
}

// Values that all lanes share before and after they have run apart.
__global__ void shared_values(int *lock, int *sum, const int *in, int *out, int n) {
    int total = 0;
    for (int i = 0; i < n; i++) {
        const int weight = in[i];
        while (atomicCAS(lock, 0, 1) != 0);
        int seen = next_number(sum);
        atomicExch(lock, 0);
        total += weight * (i + 1) + (seen < 0);
    }
    const int last = in[n - 1];
    out[threadIdx.x] = total + last * (int)threadIdx.x + n;
}
TEST(values_that_all_lanes_share_survive) {
    const int n = 6;
    Array<int> lock(1), sum(1), in(n, [](size_t i) { return (int)(i * i + 3); }, 0), out(64);
    shared_values<<<1, 64>>>(lock.device, sum.device, in.device, out.device, n);
    int total = 0;
    for (int i = 0; i < n; i++) total += in.host[i] * (i + 1);
    return finished() && equal(out.down(), [&](size_t i) { return total + in.host[n - 1] * (int)i + n; }) && equal(sum.down(), [](size_t) { return 64 * n; });
}
