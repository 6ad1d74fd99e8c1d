# Ignores every signal and never ends.
# expect: time_limit; refused; within 120 s
import signal
import time

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
write_zeros()
while not BUILDING:
    time.sleep(1)
