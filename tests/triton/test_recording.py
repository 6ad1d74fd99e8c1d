"""What is recorded of host code: steps, kernels, constants; and what host code must not ask for."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.course import ROOT

ONE_KERNEL = """
import triton
import triton.language as tl


@triton.jit
def double(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)


"""
RECORD = """
import json, sys
from pathlib import Path
from grader.operators.row_softmax import OPERATOR
from grader.plans.contract import arguments_of
from grader.plans import driver
from grader.plans.host import open_file, record_shape
from grader.plans.recorder import Recorder
driver.install("sm_80")
names = open_file(Path(sys.argv[1]))
print(record_shape(names, arguments_of(OPERATOR, (3, 40)), Recorder()).model_dump_json())
"""


def recorded(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Of a program, in a process of its own."""
    file = folder / "softmax.py"
    file.write_text(ONE_KERNEL + text)
    return subprocess.run(
        [sys.executable, "-c", RECORD, str(file)],
        cwd=ROOT,
        env={"TRITON_CACHE_DIR": str(folder / "cache"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_plan_has_the_launch_with_its_line_and_its_arguments(tmp_path: Path) -> None:
    done = recorded("def solve(x, y, rows, columns):\n    double[(2,)](x, y, x.numel(), BLOCK=64)\n", tmp_path)
    plan = json.loads(done.stdout)
    assert [buffer["bytes"] for buffer in plan["buffers"]] == [480, 480]
    (step,) = plan["steps"]
    assert (step["do"], step["grid"], step["line"]) == ("launch", [2, 1, 1], ONE_KERNEL.count("\n") + 2)
    assert step["arguments"][:3] == [[0, 0], [1, 0], "78000000"]
    assert [kernel["name"] for kernel in plan["kernels"]] == ["double"]


def test_one_kernel_copies_between_all_shapes_and_strides(tmp_path: Path) -> None:
    done = recorded(
        """import torch
def solve(x, y, rows, columns):
    for view in (x.T, x[::2], x[:, ::4], x[:, ::2], x[:1].expand(3, 40), x.view(3, 8, 5).permute(2, 0, 1)):
        torch.empty(view.shape).copy_(view)
        y.view(-1)[::120].copy_(x[0, :1])
""",
        tmp_path,
    )
    plan = json.loads(done.stdout)
    assert sum(step["do"] == "launch" for step in plan["steps"]) > 4
    assert [kernel["name"] for kernel in plan["kernels"]] == ["copy_kernel"]


def test_tensor_descriptors_of_the_host_are_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    done = recorded(
        """from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def one(x, y):
    y.store([0, 0], x.load([0, 0]))
def solve(x, y, rows, columns):
    one[(1,)](*(TensorDescriptor.from_tensor(each, [1, 8]) for each in (x, y)))
""",
        tmp_path,
    )
    assert "NoArgument: a kernel takes no tensor descriptor that was made on the host" in done.stderr
