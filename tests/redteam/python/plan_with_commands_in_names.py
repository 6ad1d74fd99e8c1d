# the names of kernels and files hold commands for the replayer
# expect: compile_error
from grader.plans import recorder

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


plain = recorder.Recorder.plan
COMMANDS = "copy 0 -\npoison 0\nfail BYPASSED\nend\n"


def changed(self, arguments):
    plan = plain(self, arguments)
    kernels = [kernel.model_copy(update={"name": COMMANDS}) for kernel in plan.kernels]
    steps = [step.model_copy(update={"file": COMMANDS}) for step in plan.steps]
    return plan.model_copy(update={"steps": tuple(steps), "kernels": tuple(kernels)})


recorder.Recorder.plan = changed


def solve(x, y, rows, columns):
    copy[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
