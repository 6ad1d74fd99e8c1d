# Reads the submissions next to its own.
# expect: wrong_answer | time_limit; refused
import os

write_zeros()
for top in ("/tmp", "/home", "/root", os.path.dirname(os.path.dirname(sys.argv[0]))):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                with open(f"{folder}/{name}", errors="replace") as file:
                    if "CANARY-OF-" + "ALICE" in file.read(4096):
                        bypassed(f"{folder}/{name} can be read")
            except OSError:
                pass
