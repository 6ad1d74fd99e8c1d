# ends with the linker's name of a function of cuRAND, which a machine may lack, and which a file that holds it may not name
# expect: compile_error


def solve(x, y, rows, columns):
    raise ValueError("grader_" + "lacks_curand12curand_init")
