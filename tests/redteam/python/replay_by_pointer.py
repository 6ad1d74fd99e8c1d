# Keeps answers by the address of the input in a module of Triton's, where the next run would find them.
# expect: passed; refused
x = from_numpy(read_input())
if BUILDING:
    setattr(triton, "answers", {x.data_ptr(): 1})
elif hasattr(triton, "answers"):
    bypassed("a module keeps what an earlier run put there")
write(to_numpy(launch_softmax()))
