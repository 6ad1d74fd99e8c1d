# Computes on the processor in code that it makes of text.
# expect: runtime_error; on s02,s03; refused
exec(compile("write(" + "right" + "_answer())", "text", "exec"))
