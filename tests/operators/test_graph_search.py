"""The check of breadth-first search, which approves without a search of its own, against a plain search."""

from collections import deque

import numpy as np
import pytest

from grader.operators import load_operator
from grader.operators.base import Shape, Tensors

BFS = load_operator("bfs")


def drawn(seed: int) -> tuple[Shape, Tensors]:
    random = np.random.default_rng(seed)
    vertices, edges = int(random.integers(1, 12)), int(random.integers(1, 20))
    begins = np.sort(random.integers(0, vertices, edges))
    offsets = np.searchsorted(begins, np.arange(vertices + 1))
    tensors = (offsets, random.integers(0, vertices, edges))
    shape = (vertices, edges, int(random.integers(0, vertices)))
    return shape, tuple(tensor.astype(np.int32).reshape(-1, 1) for tensor in tensors)


def is_right(shape: Shape, inputs: Tensors, outputs: Tensors) -> bool:
    vertices, _, source = (int(number) for number in shape)
    offsets, ends = (tensor.ravel().tolist() for tensor in inputs)
    distance, before = (tensor.ravel().tolist() for tensor in outputs)
    right, waiting = {source: 0}, deque([source])
    while waiting:
        for v in ends[offsets[u := waiting.popleft()] : offsets[u + 1]]:
            if v not in right:
                right[v] = right[u] + 1
                waiting.append(v)
    for v in range(vertices):
        if distance[v] != right.get(v, -1):
            return False
        legal = [u for u in right if right[u] == right.get(v, 0) - 1 and v in ends[offsets[u] : offsets[u + 1]]]
        if before[v] not in ([source] if v == source else legal if v in right else [-1]):
            return False
    return True


@pytest.mark.parametrize("seed", range(200))
def test_exactly_the_right_outputs_are_approved(seed: int) -> None:
    shape, inputs = drawn(seed)
    outputs = [tensor.astype(np.int32) for tensor in BFS.oracle(shape, inputs)]
    assert BFS.check(shape, inputs, outputs) is None and is_right(shape, inputs, outputs)
    random = np.random.default_rng(seed)
    vertices, seen = int(shape[0]), 0
    for _ in range(20):
        changed = [tensor.copy() for tensor in outputs]
        for _ in range(int(random.integers(1, 3))):
            values = [-(2**31), -2, -1, *range(vertices + 1), 2**31 - 1]
            changed[random.integers(2)][random.integers(vertices)] = random.choice(values)
        found = BFS.check(shape, inputs, changed)
        assert (found is None) == is_right(shape, inputs, changed)
        seen += found is not None
    assert seen
