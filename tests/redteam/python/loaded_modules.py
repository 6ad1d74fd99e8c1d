# Replaces the grader's modules in this process with its own.
# expect: wrong_answer; refused
import types

for name in [name for name in sys.modules if name.startswith("grader")]:
    sys.modules[name] = types.ModuleType(name)
write_zeros()
print("s01 passed 647483")
