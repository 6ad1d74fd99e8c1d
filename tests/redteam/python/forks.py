# Leaves a process behind that writes the right answer when the program has ended.
# expect: wrong_answer; refused
import os
import time

write_zeros()
sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1)
        write(right_answer())
        time.sleep(30)
    os._exit(0)
