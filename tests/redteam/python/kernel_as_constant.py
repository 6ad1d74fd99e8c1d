# the text of a kernel is a constant too: the compiled kernel is larger than what was checked
# expect: wrong_answer
import numpy as np
import torch

from grader.plans import recorder

PTX = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry nop(.param .u64 p)\n{\nret;\n}\n"


def solve(x, y, rows, columns):
    y.zero_()
    table = torch.from_numpy(np.frombuffer(PTX.encode(), np.uint8).copy())
    kernel = recorder.current().load("nop", PTX.encode(), 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [table.data_ptr()], threads=1)
