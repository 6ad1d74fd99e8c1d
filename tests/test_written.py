"""The line of a wrong value by a recording that needs no steps: `y = x * 2 + 1`, stored, and infinity on its way."""

from dataclasses import replace

import numpy as np
import pytest

from cudaemu.operations import OPERATIONS
from grader.checking.watch.recording import CONSTANT, Recording, Watched
from grader.checking.watch.written import not_finite, written_at
from grader.findings import sentence

WRONG = Watched("D", (0, 0, 0), word=0, bits=0)
SITES = [("mul", 3), ("fma", 4), ("store", 5), ("atomic", 6), ("other", 7)]


def recording(root: int, nodes: list[tuple[int, int, int, float]]) -> Recording:
    """Nodes are (site, a, b, value)."""
    site, a, b, value = zip((CONSTANT, 0, 0, 0.0), *nodes, strict=True)
    sites = np.array([(OPERATIONS.index(name), 0, line) for name, line in SITES], np.uint32)
    zeros = np.zeros(len(site), np.int64)
    return Recording((root,), sites, {0: "a.cu"}, np.array(site, np.uint32), np.array(a), np.array(b), zeros,
                     np.array(value, np.float32), False)  # fmt: skip


X, INTEGER = (CONSTANT, 0, 0, 2.0), (CONSTANT, 0, 0, -1.0)


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ([X, (0, 1, 1, 4.0), (1, 2, 1, 5.0), (2, 3, 0, 5.0)], 4),  # what computes it, not what stores it
        ([X, (0, 1, 1, np.inf), (1, 2, 1, np.inf), (2, 3, 0, np.inf)], 3),  # what makes infinity of numbers
        ([INTEGER, (2, 1, 0, -1.0)], 5),  # what stores an integer
        ([(4, 0, 0, -1.0)], 7),  # what swaps one in
    ],
)
def test_the_line_that_computes_a_wrong_value(nodes: list[tuple[int, int, int, float]], line: int) -> None:
    (found,) = written_at(recording(len(nodes), nodes), [WRONG], stored=True)
    assert (found.file, found.line, found.array) == ("a.cu", line, "D")
    assert not written_at(recording(len(nodes), nodes), [replace(WRONG, right=True)], stored=True)


NAN, MINUS = float("nan"), -float("inf")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            [X, (CONSTANT, 0, 0, MINUS), (0, 1, 2, MINUS), (0, 3, 3, NAN), (1, 4, 1, NAN)],
            "D becomes NaN in this line: ",
        ),
        (
            [(CONSTANT, 0, 0, 3e38), (0, 1, 1, np.inf), (2, 2, 0, np.inf)],
            "D becomes infinite in this line: 3e+38 · 3e+38",
        ),
    ],
)
def test_the_line_where_nan_or_infinity_arises(nodes: list[tuple[int, int, int, float]], said: str) -> None:
    (found,) = not_finite(recording(len(nodes), nodes), [WRONG])
    assert (found.file, found.line) == ("a.cu", 3)
    assert sentence(found).startswith(f"a.cu:3: {said}")
    assert not not_finite(recording(len(nodes), nodes), [replace(WRONG, right=True)])


def test_a_value_that_no_kernel_wrote_has_no_line() -> None:
    assert not written_at(recording(0, [X]), [WRONG], stored=True)


def test_a_line_that_only_stores_is_no_evidence_where_there_is_other() -> None:
    moved = recording(2, [INTEGER, (2, 1, 0, -1.0)])
    assert not written_at(moved, [WRONG], stored=False)
