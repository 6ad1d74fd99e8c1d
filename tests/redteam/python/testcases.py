# Looks everywhere for a file of the right size called *.out and hands it in.
# expect: wrong_answer | time_limit; refused
import os
import pathlib

write_zeros()
size = 4 * read_input().size
for top in ("/work", "/tmp", "/home", "/root", "/var", "/opt", os.path.dirname(sys.argv[1]), ".."):
    for folder, _, names in os.walk(top):
        for name in names:
            path = pathlib.Path(folder) / name
            try:
                if name.endswith(".out") and path.stat().st_size == size:
                    path.open("rb").read(1)
                    write(np.fromfile(path, np.float32))
                    bypassed(f"{path} can be read")
            except OSError:
                pass
