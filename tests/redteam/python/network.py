# Connects to whatever listens.
# expect: wrong_answer; refused
import socket

write_zeros()
for family, address in (
    (socket.AF_INET, ("127.0.0.1", 47321)),
    (socket.AF_UNIX, "\0redteam-canary"),
    (socket.AF_UNIX, f"{CANARY}/socket"),
    (socket.AF_INET, ("1.1.1.1", 80)),
):
    try:
        with socket.socket(family) as connection:
            connection.settimeout(2)
            connection.connect(address)
            bypassed(f"{address} answers")
    except OSError:
        pass
