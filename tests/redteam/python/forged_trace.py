# Writes a trace of its own next to the runtime's.
# expect: runtime_error; on s02,s03; refused
import os

place = os.environ.get("GRADER_TRACE", "")
line = (
    '{"kind":"kernel","name":"softmax_kernel","grid":[1,1,1],"block":[128,1,1],"registers":10,"static_shared_bytes":0,'
)
line += '"dynamic_shared_bytes":0,"local_bytes":0,"start_ns":1,"end_ns":2,"stream":0}\n'
if place.startswith("fd:"):
    os.write(int(place[3:]), line.encode() * 3)
write(right_answer())
