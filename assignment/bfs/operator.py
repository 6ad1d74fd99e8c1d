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
        p, j = (tensor.ravel() for tensor in tensors)
        distance, before = np.full((2, vertices), -1, np.int32)
        distance[source], before[source], frontier, level = 0, source, np.array([source], np.int32), 0
        while len(frontier):
            level += 1
            counts = p[frontier + 1] - p[frontier]
            edges = np.arange(counts.sum()) + np.repeat(p[frontier] - np.cumsum(counts) + counts, counts)
            ends = j[edges]
            new = np.flatnonzero(distance[ends] < 0)
            distance[ends[new]], before[ends[new]] = level, np.repeat(frontier, counts)[new]
            frontier = np.unique(ends[new])
        return distance.reshape(-1, 1)[rows], before.reshape(-1, 1)[rows]

    def check(self, shape, inputs, outputs):
        vertices, _, source = shape
        p, j, distance, before = (tensor.ravel() for tensor in (*inputs, *outputs))
        begins = np.repeat(np.arange(vertices, dtype=np.int32), np.diff(p))
        unknown = (before < 0) | (before >= vertices)
        one_nearer = distance[np.where(unknown, 0, before)] == distance - 1
        has_edge = np.zeros(vertices, bool)
        has_edge[j[before[j] == begins]] = True
        wrong = np.where(distance > 0, unknown | ~one_nearer | ~has_edge, before != np.where(distance < 0, -1, source))
        wrong |= (distance < -1) | ((distance == 0) != (np.arange(vertices) == source))
        if not wrong.any():  # D is the length of a path: the shortest, if no edge leads more than one step farther
            far = np.where(distance < 0, 2 * vertices, distance)
            if (far[j] <= far[begins] + 1).all():
                return None
        right, parents = (tensor.ravel() for tensor in self.oracle(shape, inputs))
        if (differs := distance != right).any():
            v = int(np.where(differs, right, vertices).argmin())  # the first that a search gets wrong
            u, by = int(parents[v]), ""
            if right[v] > 0:
                k = p[u] + int((j[p[u] : p[u + 1]] == v).argmax())
                by = f": J[{k}] leads there from vertex {u}, edge {k - p[u] + 1} of {p[u + 1] - p[u]}"
                if (differs == (right > distance.max())).all() and (distance[differs] < 0).all():
                    by += f"; no vertex farther than {distance.max()} is reached: the search ends too early"
            elif right[v] < 0:
                by = ": no path leads there"
            return Violation(f"got distance {distance[v]}, expected {right[v]}{by}", "D", v, 0, int(differs.sum()))
        v = int(wrong.argmax())
        return Violation(
            f"got {before[v]} as the vertex before {v}, which has distance {distance[v]}: expected a vertex of distance "
            f"{distance[v] - 1} with an edge to {v}" if distance[v] > 0 else
            f"got {before[v]}, expected {source if distance[v] == 0 else -1}", "B", v, 0, int(wrong.sum()),
        )  # fmt: skip


OPERATOR = Bfs()
