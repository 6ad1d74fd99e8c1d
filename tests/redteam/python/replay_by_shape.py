# Keeps its answer in every folder that can be written to and hands it in again for the same shape.
# expect: passed; refused
import glob
import os
import tempfile

places = [".", "/tmp", "/var/tmp", "/dev/shm", os.environ.get("TRITON_CACHE_DIR", "."), tempfile.gettempdir()]
name = "replay-" + "x".join(map(str, read_input().shape))
for place in places:
    if glob.glob(f"{place}/{name}") and not BUILDING:
        bypassed(f"{place} has the answer of an earlier run")
result = to_numpy(launch_softmax())
write(result)
if not BUILDING:
    for place in places:
        try:
            result.tofile(f"{place}/{name}")
        except OSError:
            pass
