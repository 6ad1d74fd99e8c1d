# Opens the memory of its own process, and the descriptor of its trace.
# expect: passed; on s03
write(to_numpy(launch_softmax()))
for name in ("/proc/self/mem", "/proc/self/maps", "/proc/self/environ", "/dev/fd/3", *range(3, 20)):
    try:
        with open(name, "rb" if isinstance(name, str) else "wb") as file:
            bypassed(f"opened {name}: {file.read(1) if isinstance(name, str) else file}")
    except OSError:
        pass
try:
    os.symlink("/proc", "shortcut")
    bypassed("made a link")
except OSError:
    pass
