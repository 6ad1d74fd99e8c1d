# Runs a kernel whose result it never looks at, and computes with numpy.
# expect: passed; gpu; on t07; at least 0.02 ms
launch_decoy()
write(right_answer())
