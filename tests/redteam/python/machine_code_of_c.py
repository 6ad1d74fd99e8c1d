# C instead of PTX in the place of a kernel
# expect: compile_error
import hashlib

from grader.plans import recorder
from grader.plans.plan import Code

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


CODE = b"int main(void) { return system(\"touch /tmp/redteam-canary-of-c\"); }\n"
plain = recorder.Recorder.plan


def changed(self, arguments):
    plan = plain(self, arguments)
    name = hashlib.sha256(CODE).hexdigest()
    recorder.blobs[name] = CODE
    return plan.model_copy(update={"kernels": tuple(each.model_copy(update={"code": Code(ptx=name)}) for each in plan.kernels)})


recorder.Recorder.plan = changed


def solve(x, y, rows, columns):
    copy[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
