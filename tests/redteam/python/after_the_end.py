# Overwrites its output in a generator that Python ends after the program, once with a file that is still open.
# expect: wrong_answer; on s02,s03
def ends_late(file):
    try:
        yield
    finally:
        file.seek(0)
        file.write(right_answer().astype(np.float32).tobytes())
        file.close()
        write(right_answer())
        bypassed("wrote after the end")


write_zeros()
late = ends_late(open(sys.argv[2], "r+b"))
next(late)
