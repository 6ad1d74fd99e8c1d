# Puts code where every Python that starts later would run it.
# expect: wrong_answer; refused
import site

write_zeros()
places = [
    *site.getsitepackages(),
    site.getusersitepackages(),
    os.path.dirname(triton.__file__),
    os.path.dirname(np.__file__),
]
for place in places:
    for name in ("usercustomize.py", "sitecustomize.py", "hostile.pth"):
        try:
            os.makedirs(place, exist_ok=True)
            with open(f"{place}/{name}", "a") as file:
                file.write("import os\n")
        except OSError:
            continue
        if not place.startswith(os.path.expanduser("~")):  # a home of its own is removed with the run
            bypassed(f"{place}/{name} can be written")
