# Puts a driver into Triton that computes with numpy and launches nothing.
# expect: passed | runtime_error | no_output; flagged; refused
class Driver(type(triton.runtime.driver.active)):
    class launcher_cls:
        def __init__(self, source, metadata):
            pass

        def __call__(self, *words):
            write(right_answer())


triton.runtime.driver.set_active(Driver())
launch_softmax()
