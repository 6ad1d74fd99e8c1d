// Memory used after its end, freed twice, never freed; copies longer than what they copy.
#include "seeded.h"

__global__ void add_one(int *p) {
    p[threadIdx.x] += 1; // BUG use_after_free: memory // BUG use_after_reset: memory
}
PROGRAM(use_after_free) {
    int *p = filled<int>(64);
    cudaFree(p);
    add_one<<<1, 64>>>(p);
}
PROGRAM(use_after_reset) {
    int *p = filled<int>(64);
    cudaDeviceReset();
    add_one<<<1, 64>>>(p);
}

struct Node {
    int value;
    Node *next;
};
__global__ void freed_list(int *out) {
    Node *head = nullptr;
    for (int i = 0; i < 3; i++) {
        Node *n = (Node *)malloc(sizeof(Node));
        n->value = i, n->next = head, head = n;
    }
    int sum = 0;
    for (Node *n = head; n; n = n->next) { // BUG device_heap_use_after_free: memory
        sum += n->value;
        free(n);
    }
    out[threadIdx.x] = sum;
}
PROGRAM(device_heap_use_after_free) { freed_list<<<1, 32>>>(filled<int>(32)); }

PROGRAM(double_free) {
    int *p = filled<int>(64);
    cudaFree(p);
    cudaFree(p); // BUG double_free: api host
}
PROGRAM(free_inside_an_allocation) {
    int *p = filled<int>(64);
    cudaFree(p + 8); // BUG free_inside_an_allocation: api host
}
PROGRAM(leak) {
    int *p;
    cudaMalloc(&p, 1000 * sizeof(int)); // BUG leak: memory host
    cudaMemset(p, 0, 1000 * sizeof(int));
    int *q = filled<int>(10);
    add_one<<<1, 64>>>(p);
    cudaFree(q);
}
PROGRAM(copy_longer_than_the_allocation) {
    std::vector<float> host(128);
    cudaMemcpy(fresh<float>(100), host.data(), 128 * sizeof(float), cudaMemcpyHostToDevice); // BUG copy_longer_than_the_allocation: memory host
}
PROGRAM(device_pointer_on_the_host) {
    int *p = filled<int>(64);
    printf("%d\n", p[5]); // BUG device_pointer_on_the_host: memory host
}
