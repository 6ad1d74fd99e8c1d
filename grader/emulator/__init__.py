class CompileFailed(Exception):
    log = ""


class Unsupported(Exception):
    pass


def compile_program(*a, **k):
    raise Unsupported("x")


def runtime_identity():
    return "x"
