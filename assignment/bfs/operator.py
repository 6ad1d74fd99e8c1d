"""Breadth-first search: header vertices, edges, source; input P, J (the graph in CSR); output D, B.

D is the number of edges on a shortest path from the source, −1 if there is none. B is the vertex before on such a path, −1
if there is none; that of the source is the source. Often several vertices may be B, so it is checked and not compared.
"""

import numpy as np

from grader.operators.base import Violation, WholeOperator, size_of, vector
from grader.operators.number_types import I32


class Bfs(WholeOperator):
    name = "bfs"
    dimensions = (size_of("vertices"), size_of("edges"), size_of("source", least=0))
    planar_output = True
    independent_rows = False

    def relation(self, shape):
        return "" if shape[2] < shape[0] else "source must be a vertex, that is less than vertices"

    def inputs(self, shape):
        return vector("P", shape[0] + 1, I32), vector("J", shape[1], I32)

    def outputs(self, shape):
        return vector("D", shape[0], I32), vector("B", shape[0], I32)

    def flops(self, shape):
        return shape[0] + shape[1]

    def oracle(self, shape, tensors, rows=slice(None)):
        vertices, _, source = shape
        p, j = (tensor.ravel().astype(np.int64) for tensor in tensors)
        begins = np.repeat(np.arange(vertices), np.diff(p))
        distance, before = np.full(vertices, -1), np.full(vertices, -1)
        distance[source], before[source], frontier, level = 0, source, np.array([source]), 0
        while len(frontier):
            level += 1
            counts = p[frontier + 1] - p[frontier]
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            edges = np.repeat(p[frontier], counts) + steps
            edges = edges[distance[j[edges]] < 0]
            distance[j[edges]], before[j[edges]] = level, begins[edges]
            frontier = np.unique(j[edges])
        return distance.reshape(-1, 1)[rows], before.reshape(-1, 1)[rows]

    def check(self, shape, inputs, outputs):
        vertices, _, source = shape
        right, parents = self.oracle(shape, inputs)
        distance, before = (tensor.ravel().astype(np.int64) for tensor in outputs)
        if (wrong := distance != right.ravel()).any():
            v = int(np.where(wrong, right.ravel(), vertices).argmin())  # the first that a search gets wrong
            p, j, u, by = inputs[0].ravel(), inputs[1].ravel(), int(parents[v, 0]), ""
            if right[v, 0] > 0:
                k = p[u] + int((j[p[u] : p[u + 1]] == v).argmax())
                by = f": J[{k}] leads there from vertex {u}, edge {k - p[u] + 1} of {p[u + 1] - p[u]}"
                if (wrong == (right.ravel() > distance.max())).all() and (distance[wrong] < 0).all():
                    by += f"; no vertex farther than {distance.max()} is reached: the search ends too early"
            elif right[v, 0] < 0:
                by = ": no path leads there"
            return Violation(f"got distance {distance[v]}, expected {right[v, 0]}{by}", "D", v, 0, int(wrong.sum()))
        wrong = np.where(distance <= 0, before != np.where(distance < 0, -1, source), False)
        wrong |= (distance > 0) & ((before < 0) | (before >= vertices))
        asked = np.flatnonzero((distance > 0) & ~wrong)
        wrong[asked] = distance[before[asked]] != distance[asked] - 1
        asked = np.flatnonzero((distance > 0) & ~wrong)
        begins, ends = np.repeat(np.arange(vertices), np.diff(inputs[0].ravel())), inputs[1].ravel()
        has_edge = np.zeros(vertices, bool)
        has_edge[ends[before[ends] == begins]] = True
        wrong[asked] = ~has_edge[asked]
        if not wrong.any():
            return None
        v = int(wrong.argmax())
        return Violation(
            f"got {before[v]} as the vertex before {v}, which has distance {distance[v]}: expected a vertex of distance "
            f"{distance[v] - 1} with an edge to {v}" if distance[v] > 0 else
            f"got {before[v]}, expected {source if distance[v] == 0 else -1}", "B", v, 0, int(wrong.sum()),
        )  # fmt: skip


OPERATOR = Bfs()
