/* Graphs: nodes and their dependencies. An executable graph is a copy; each of its nodes points to its original. */
#ifndef GRAPH_H
#define GRAPH_H

#include "emu.h"

struct node {
    enum cudaGraphNodeType type;
    struct graph *graph;
    struct node *origin; /* in a copy: the node that this one was made from */
    struct node **before; /* the nodes that it waits for */
    u32 before_count;
    int disabled, done;
    union {
        struct { const void *host; dim3 grid, block; u32 shared; int cooperative; void **args; u8 *bytes; } kernel;
        struct { struct move move; struct cudaMemcpy3DParms given; } copy; /* `given` is zero where cudaMemcpyAsync was captured */
        struct cudaMemsetParamsV2 set;
        struct cudaHostNodeParams function;
        struct graph *child;
        cudaEvent_t event;
        struct { void *p; struct cudaMemAllocNodeParams given; } memory;
    };
};

struct graph {
    struct node **nodes;
    u32 count;
    unsigned long long flags; /* of cudaGraphInstantiate */
    u32 number;
};

struct graph *graph_create(void);
struct node *graph_add(struct graph *g, enum cudaGraphNodeType type, struct node *const *before, size_t count);
struct graph *graph_copy(const struct graph *g);
struct node *graph_find(const struct graph *g, const struct node *origin);
/* A new array of the nodes, each after those that it waits for; NULL if nodes wait for each other in a cycle. */
struct node **graph_order(struct graph *g);
/* Each returns 0 if the parameters are wrong. */
int node_set_kernel(struct node *n, const struct cudaKernelNodeParams *p);
int node_set_copy(struct node *n, const struct cudaMemcpy3DParms *p);
int node_set_parameters(struct node *n, const struct cudaGraphNodeParams *p);

#endif
