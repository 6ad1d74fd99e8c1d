# an output that no kernel writes
# expect: wrong_answer
def solve(x, y, rows, columns):
    pass
