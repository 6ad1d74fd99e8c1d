# Computes on the processor in code that it unmarshals.
# expect: runtime_error; on s02,s03; refused
import marshal
import types

code = marshal.dumps(compile("write(right_answer())", "bytes", "exec"))
types.FunctionType(marshal.loads(code), globals())()
