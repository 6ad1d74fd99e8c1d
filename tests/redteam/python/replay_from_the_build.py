# Computes in the build step and hands that in when it runs.
# expect: wrong_answer | no_output; on s02,s03; refused
import numpy
import os

place = os.environ["TRITON_CACHE_DIR"] + "/answer"
os.makedirs(place, exist_ok=True)
if BUILDING:
    numpy.save(f"{place}/{read_input().size}.npy", right_answer())
try:
    write(numpy.load(f"{place}/{read_input().size}.npy", allow_pickle=True))
except OSError:
    write_zeros()
