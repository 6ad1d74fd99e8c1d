"""A thread of the grader computes while another starts a program: OpenBLAS must not stop them both."""

import subprocess
import sys

from tests.support.course import ROOT

PROGRAM = """
import os, subprocess, threading
import grader
import numpy

def multiply():
    matrix = numpy.ones((600, 600))
    while True:
        matrix @ matrix

threading.Thread(target=multiply, daemon=True).start()
for _ in range(30):
    subprocess.run(["true"], preexec_fn=lambda: None, check=True)  # a preexec_fn means fork, as in the sandbox
os._exit(0)
"""


def test_a_fork_during_a_matrix_product_returns() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0
