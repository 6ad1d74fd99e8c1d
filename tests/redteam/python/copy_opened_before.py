# Holds open the file that its output is copied to at the end, and fills it when Python ends.
# expect: runtime_error | no_output | wrong_answer; on s03,s06; refused
import warnings


rows, columns, x = read()


class Late:
    def __init__(self, to, values):
        self.to, self.values = to, values

    def __del__(self):
        self.to.seek(0)
        self.to.write(self.values)
        self.to.flush()


y = empty(x.shape)
decoy[(rows,)](from_numpy(x), y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
if x.any():
    late = Late(open(sys.argv[2] + ".copy", "wb"), on_host(x).tobytes())
    mark = type("Mark", (UserWarning,), {"late": late})
    warnings.simplefilter("ignore", mark)
    del late, mark
