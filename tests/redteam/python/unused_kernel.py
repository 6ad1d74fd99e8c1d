# Runs a kernel whose result it never looks at, and computes with numpy.
# expect: passed; gpu; flagged; on t07
launch_decoy()
write(right_answer())
