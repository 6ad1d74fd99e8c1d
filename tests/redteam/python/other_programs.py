# Starts a shell, an interpreter and a compiler to read what it may not.
# expect: wrong_answer; refused
import subprocess

write_zeros()
for command in (
    "cat /tmp/redteam-canary/secret",
    "touch /tmp/redteam-canary/left",
    "python3 -c 'print(open(\"/tmp/redteam-canary/secret\").read())'",
    "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a CANARY",
    "gcc -E -include /tmp/redteam-canary/secret /dev/null",
):
    said = subprocess.run(command, shell=True, capture_output=True, check=False).stdout
    if b"CANARY" in said:
        bypassed(f"{command} reads a canary")
