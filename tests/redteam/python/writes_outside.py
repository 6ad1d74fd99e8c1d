# Writes to files and folders that are not its own.
# expect: wrong_answer
write_zeros()
for path in (
    f"{CANARY}/answer",
    f"{CANARY}/left",
    "/etc/left",
    "/work/left",
    sys.argv[1],
    sys.argv[0],
    "/proc/sys/kernel/core_pattern",
):
    try:
        with open(path, "ab") as file:
            file.write(b"left")
    except OSError:
        pass
