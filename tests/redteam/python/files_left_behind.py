# Leaves files wherever it can, for the next run to find.
# expect: wrong_answer; refused
import os

write_zeros()
places = {os.path.realpath(place) for place in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~"), "/run", ".")}
for place in places:
    path = f"{place}/left-behind-by-python"
    if os.path.exists(path) and not BUILDING:
        bypassed(f"{path} is still there")
    try:
        open(path, "w").close()
    except OSError:
        pass
