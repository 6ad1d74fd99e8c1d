# Fills Triton's cache with large files and with many in the build step.
# expect: passed; refused; within 120 s
import os

if BUILDING:
    cache = os.environ["TRITON_CACHE_DIR"]
    try:
        for number in range(20000):
            with open(f"{cache}/{number}.ptx", "wb") as file:
                file.truncate(1 << 30 if number % 1000 == 0 else 10)
    except OSError:
        pass
write(to_numpy(launch_softmax()))
