# host code ends its process without an error
# expect: compile_error
import os


def solve(x, y, rows, columns):
    os._exit(0)
