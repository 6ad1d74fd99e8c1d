# Leaves a process behind with posix_spawn.
# expect: wrong_answer; refused
import os

write_zeros()
code = "import time, sys; time.sleep(1); open(sys.argv[1], 'wb').write(bytes(8)); time.sleep(60)"
try:
    os.posix_spawn(sys.executable, [sys.executable, "-Sc", code, sys.argv[2]], os.environ, setsid=True)
except OSError as error:
    print(error)
