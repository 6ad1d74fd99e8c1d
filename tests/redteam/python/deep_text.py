# Is nested more deeply than a parser can follow.
# expect: compile_error; refused
x = 1
