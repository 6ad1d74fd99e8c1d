# Opens the canary and runs a shell through ctypes.
# expect: wrong_answer; refused
import ctypes

libc = ctypes.CDLL(None)
write_zeros()
libc.system(
    b"cat /tmp/redteam-canary/secret; touch /tmp/redteam-canary/left; cp /tmp/redteam-canary/answer "
    + sys.argv[2].encode()
)
