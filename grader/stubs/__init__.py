"""Headers that stand in for libraries students include without using (cublas_v2.h, …).

They declare and define nothing that could be linked: a program that includes one compiles, a program that calls the
library fails to link. A real header of the same name wins, since these are searched last.
"""

from pathlib import Path

STUB_HEADERS = Path(__file__).with_name("include")
"""The folder to search."""
