# Computes on the processor in code that it makes of text.
# expect: passed; flagged; refused
exec(compile("write(" + "right" + "_answer())", "text", "exec"))
