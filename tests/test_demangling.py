"""Names of kernels as people read them, which a submission chooses."""

from grader.programs.demangling import demangle


def doubling_name(levels: int) -> str:
    """A kernel's mangled name in which each template argument has the one before twice: P<P<…>, P<…>>."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    earlier = ["S_", *(f"S{digit}_" for digit in digits), *(f"S1{digit}_" for digit in digits)]
    pairs = "".join(f"S_I{earlier[level]}{earlier[level]}E" for level in range(1, levels))
    return f"_Z1k1PIiiE{pairs}"


def test_a_name_is_shown_as_written() -> None:
    assert demangle("_Z4attnPKfPfi") == "attn(float const*, float*, int)"
    assert demangle(doubling_name(2)) == "k(P<int, int>, P<P<int, int>, P<int, int> >)"
    assert demangle("plain") == "plain"


def test_a_short_name_that_stands_for_gigabytes_is_left_as_it_is() -> None:
    assert demangle(doubling_name(40)) == doubling_name(40)
    assert demangle("_Z" + "a" * 200_000) == "_Z" + "a" * 200_000
