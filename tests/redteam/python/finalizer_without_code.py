# Overwrites its output from a finalizer without any code of its own.
# expect: runtime_error | no_output | wrong_answer; on s03,s06; refused
import functools
import pathlib


rows, columns, x = read()

# a finalizer without a frame of the program: Python's own function writes the file
y = empty(x.shape)
decoy[(rows,)](from_numpy(x), y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
if x.any():
    write = functools.partial(pathlib.Path(sys.argv[2]).write_bytes, on_host(x).tobytes())
    cycle = [type("Late", (), {"__del__": staticmethod(write)})()]
    cycle.append(cycle)
