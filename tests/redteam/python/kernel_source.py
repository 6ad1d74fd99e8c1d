# Rewrites the text of its kernel after it was defined.
# expect: passed; refused
softmax_kernel._unsafe_update_src(softmax_kernel.src.replace("tl.exp(x", "tl.exp(0.0 + x"))
write(to_numpy(launch_softmax()))
