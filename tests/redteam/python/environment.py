# Looks for secrets in its own environment and in that of every process.
# expect: wrong_answer; refused
import glob
import os

write_zeros()
said = repr(dict(os.environ))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        with open(path, errors="replace") as file:
            said += file.read()
    except OSError:
        pass
if "CANARY-SECRET" in said:
    bypassed("an environment has the secret")
