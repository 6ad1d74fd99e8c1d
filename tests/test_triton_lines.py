"""The line of a Triton program that a diagnosis refers to."""

from __future__ import annotations

import pytest

from grader.checking.suspects import suspect
from grader.operators.base import Step
from tests.support.course import ROOT

SOFTMAX = """
@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new)
        s += tl.sum(tl.exp(x - new), 0)
        m = new
    y = tl.exp(x - m) / s  # one block
    tl.store(y_ptr + row * columns + column, y, mask=column < columns)

rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
softmax[(rows // 2,)](x, y, columns, BLOCK=64)
to_numpy(y).tofile(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("row", 4),
        ("state_start", 5),
        ("keys", 7),
        ("columns", 8),
        ("load_q", 9),
        ("maximum", 10),
        ("rescale", 11),
        ("division", 11),  # what divides the output is summed in lines 11 and 12
        ("weight", 12),
        ("total", 12),
        ("next_maximum", 13),
        ("store", 15),
        ("header", 17),
        ("launch", 18),
        ("write", 19),
    ],
)
def test_a_step_is_found_by_what_does_it(step: Step, number: int) -> None:
    line = suspect([("softmax.py", SOFTMAX.encode())], (step,))
    assert line is not None and (line.file, line.number) == ("softmax.py", number)


def test_a_line_is_quoted_without_its_comment_but_with_its_whole_division() -> None:
    found = suspect([("softmax.py", SOFTMAX.encode())], ("launch",))
    assert found is not None
    assert found.quoted == "softmax.py:18: `softmax[(rows // 2,)](x, y, columns, BLOCK=64)`"
    line = suspect([("softmax.py", b"@jit\ndef f(y):\n    y = 1 / s  # a comment\n")], ("division",))
    assert line is not None and line.quoted == "softmax.py:3: `y = 1 / s`"


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("scores", "tl.dot(q, tl.trans(k))"),
        ("output_sum", "tl.dot("),
        ("rescale", "tl.exp2(m - base)"),
        ("weight", "tl.exp2(s * scale - base[:, None])"),
        ("load_k", "load_rows(k_ptr"),
        ("scale", "scale"),
    ],
)
def test_the_steps_of_attention_are_found(step: Step, code: str) -> None:
    line = suspect([("half.py", (ROOT / "reference/half/flash.py").read_bytes())], (step,))
    assert line is not None and code in line.text


@pytest.mark.parametrize("text", [b"def f(:\n", b"", b"(" * 5000, b"x = 1\n" * 100_000, b"\xff\xfe"])
def test_no_line_is_found_where_there_is_none(text: bytes) -> None:
    assert suspect([("softmax.py", text)], ("weight", "store")) is None
