# Runs a kernel whose result it never looks at, and computes with numpy.
# expect: runtime_error; on s03,t07; gpu
launch_decoy()
write(right_answer())
