# Imports what it may not by a name that it puts together.
# expect: wrong_answer; refused
import importlib

write_zeros()
system = getattr(importlib.import_module("o" + "s"), "sys" + "tem")
system("cat /tmp/redteam-canary/secret; touch /tmp/redteam-canary/left")
