# host code never ends
# expect: compile_error; within 90 s
def solve(x, y, rows, columns):
    while True:
        pass
