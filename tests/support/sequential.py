"""The sequential program of hw4 as one file, which tests hand in as a right submission in plain C."""

from grader.base.paths import course_root

_INCLUDE = '#include "sequential.h"\n'


def right_program() -> str:
    """hw4's baseline with the header that it includes."""
    source = (course_root() / "reference/hw4/seq_flash_attention.c").read_text()
    assert _INCLUDE in source
    return source.replace(_INCLUDE, (course_root() / "reference/sequential.h").read_text())
