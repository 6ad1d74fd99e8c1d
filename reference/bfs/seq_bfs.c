/* The sequential baseline of bfs: the whole search in one iteration. sequential.h does the rest. */
#define HEADER_WORDS 3 /* vertices edges source */
#include "sequential.h"

static void describe(struct problem *problem)
{
    const int32_t vertices = problem->header[0], edges = problem->header[1], source = problem->header[2];
    if (vertices < 1 || edges < 0 || source < 0 || source >= vertices)
        return;
    problem->input_type = problem->output_type = BYTES;
    problem->inputs = 4 * ((size_t)vertices + 1 + (size_t)edges);
    problem->outputs = 8 * (size_t)vertices;
    problem->iterations = 1;
}

static void iterate(const struct problem *problem, long long iteration)
{
    (void)iteration;
    const int32_t vertices = problem->header[0], source = problem->header[2];
    const int32_t *p = tensor_at(problem, 0), *j = p + vertices + 1;
    int32_t *distance = output_at(problem, 0), *before = distance + vertices;
    int32_t *queue = malloc((size_t)vertices * sizeof *queue), end = 0;
    if (!queue)
        fail("queue", "not enough memory");
    for (int32_t v = 0; v < vertices; v++)
        distance[v] = before[v] = -1;
    distance[source] = 0, before[source] = source, queue[end++] = source;
    for (int32_t first = 0; first < end; first++) {
        const int32_t u = queue[first];
        for (int32_t k = p[u]; k < p[u + 1]; k++)
            if (distance[j[k]] < 0)
                distance[j[k]] = distance[u] + 1, before[j[k]] = u, queue[end++] = j[k];
    }
    free(queue);
}
