# Replaces built-in functions that the process around it uses.
# expect: wrong_answer; refused
import builtins

write_zeros()
opened = builtins.open
builtins.open = lambda name, *words, **named: print("647483", name) or opened(name, *words, **named)
builtins.isinstance = lambda *words: True
builtins.max = lambda *words, **named: 0
