# Has Python report every call, to get at what the process around it does.
# expect: wrong_answer | no_output; refused
# Under Python 3.12, Triton 3.6 itself fails while calls are traced: no output.
def tracing(frame, event, argument):
    if "expected" in frame.f_locals:
        bypassed("a frame knows what is expected")
    return tracing


sys.settrace(tracing)
sys.setprofile(lambda *words: None)
launch_decoy()
write_zeros()
