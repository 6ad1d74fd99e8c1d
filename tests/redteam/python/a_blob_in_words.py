# the text of an error looks like a reference to a constant
# expect: compile_error
def solve(x, y, rows, columns):
    raise ValueError("@" + "0" * 64)
