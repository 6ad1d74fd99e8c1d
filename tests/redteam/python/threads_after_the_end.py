# Ends, while threads go on computing the answer.
# expect: runtime_error; on s02,s03; refused
import threading
import time


def late():
    time.sleep(0.2)
    write(right_answer())


write_zeros()
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
